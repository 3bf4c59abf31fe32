// Stages 7 and 8: what the executor lacks, the credit, and the destination and form of the packet.

// Stage 7. Also the position where a search continues: after this entry, or at it.
control Compare(inout headers_t h, inout metadata_t m) {
    action what_is_missing() { m.missing = h.assigned.resources & ~h.retrieve.resources; }
    AT_STAGE(7) table compare { actions = { what_is_missing; } const default_action = what_is_missing(); }
    action behind() { h.swap.at = m.at + 4; }
    action there() { h.swap.at = m.at; }
    AT_STAGE(7) table next {
        key = { m.role: exact; }
        actions = { behind; there; @defaultonly NoAction; }
        const entries = { (Role.TAKE): behind(); (Role.SWAP): behind(); (Role.AGAIN): there(); }
        const default_action = NoAction;
    }
    apply { compare.apply(); next.apply(); }
}

// Stage 8. `credit` is N plus the number of assigned tasks.
// A SUBMIT reads it for this task, if that was not accepted, or for its next one.
control Credit(inout headers_t h, inout metadata_t m) {
    REGISTER(credit, 32, bit<2>, 4)
    ACCESS_IT(credit_pay, credit, 32, bit<2>, v = v + 1;)
    ACCESS(credit_read, credit, 32, bit<2>, 32, rv = v;)
    action pay() { DO(credit_pay, m.lvl[1:0]); }
    action read() { GET(h.ack.credit, credit_read, m.lvl[1:0]); h.ack.credit_of = h.task.level; }
    AT_STAGE(8) table leave {
        key = { m.role: ternary; m.missing: ternary; }
        actions = { pay; read; @defaultonly NoAction; }
        const entries = {
            (Role.TAKE, 0): pay();
            (Role.SWAP, 0): pay();
            (Role.SUBMIT, _): read();
            (Role.REST, _): read();
            (Role.STORE, _): read();
        }
        const default_action = NoAction;
    }
    apply { leave.apply(); }
}

// Stage 8.
control Route(inout headers_t h, inout metadata_t m, INTRINSIC) {
#define WITHOUT_A_TASK h.counter.setInvalid(); h.swap.setInvalid(); \
    h.token.setInvalid(); h.assigned.setInvalid(); h.origin.setInvalid()
// The wire has one reason for all refusals: 1, FULL.
#define REFUSED COUNTED; h.ack.refused = h.ack.refused | h.round.word; h.ack.why = 1
    action taken_last() { ANSWER(Op.SUBMIT_ACK); TAKEN; }
    action taken() { TAKEN; NEXT; }
    action ask_for_credit() { AROUND(Op.REST); h.round.left = m.left; h.round.level = 0; }
    action refused_last() { ANSWER(Op.SUBMIT_ACK); REFUSED; }
    action refused() { REFUSED; NEXT; }
    action assign() { ANSWER(Op.ASSIGN); }
    action search() { AROUND(Op.SWAP); h.round.level = m.level; h.counter.setInvalid(); }
    action no_op() { ANSWER(Op.NO_OP); }
    action next_level() { AROUND(Op.RETRIEVE); h.round.level = m.level + 1; WITHOUT_A_TASK; }
    action reset() { ANSWER(Op.RESET); }
    AT_STAGE(8) table route {
        key = { m.role: ternary; m.missing: ternary; m.level: ternary; m.left: ternary; }
        actions = {
            taken_last; taken; ask_for_credit; refused_last; refused; assign; search; no_op; next_level; reset;
            @defaultonly NoAction;
        }
        // Columns: role, what the executor lacks, level, tasks left.
        const entries = {
            (Role.STORE, _, _, 1): taken_last();
            (Role.STORE, _, _, _): taken();
            (Role.SUBMIT, _, _, _): ask_for_credit();
            (Role.REST, _, _, 1): refused_last();
            (Role.REST, _, _, _): refused();
            (Role.REFUSE, _, _, 1): refused_last();
            (Role.REFUSE, _, _, _): refused();
            (Role.TAKE, 0, _, _): assign();
            (Role.TAKE, _, _, _): search();
            (Role.SWAP, 0, _, _): assign();
            (Role.SWAP, _, _, _): search();
            (Role.AGAIN, _, _, _): search();
            (Role.PLACE, _, 4, _): no_op();
            (Role.PLACE, _, _, _): next_level();
            (Role.RETRIEVE, _, _, _): no_op();
            (Role.RESET, _, _, _): reset();
        }
        const default_action = NoAction;
    }
    apply { route.apply(); }
}
