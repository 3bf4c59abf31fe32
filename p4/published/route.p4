// Stage 8: destination and form of the packet, what egress does with the entry, and any copy.

control Route(inout headers_t h, inout metadata_t m, INTRINSIC) {
    action stored_last() {
        ANSWER(Op.SUBMIT_ACK); TAKEN; h.ack.refused = 0; h.preference.setInvalid(); m.role = Role.STORE;
    }
    action stored() { TAKEN; NEXT; m.role = Role.STORE; }
    action full() {
        ANSWER(Op.SUBMIT_ACK); h.preference.setInvalid();
        h.ack.why = 1; h.ack.refused = h.ack.refused & ~h.ack.taken;
    }
    // An acknowledged task: it is stored, and the packet ends after egress;
    // or it is lost, and its client will submit it again.
    action put_back() { OUT_BY(RECIRCULATION_PORT); m.role = Role.PLACE; }
    action given_up() { DROP; }
    action assign(bit<8> role) {
        ANSWER(Op.ASSIGN); h.token.setValid(); h.assigned.setValid(); h.origin.setValid();
        h.assigned.resources = m.theirs[7:0]; m.role = role;
    }
    action no_op() { ANSWER(Op.NO_OP); m.role = Role.NONE; }
    action no_op_task_left() { ANSWER(Op.NO_OP); }
    action next_level() {
        AROUND(Op.RETRIEVE); h.round.level = m.level + 1; h.round.left = 0; h.round.word = 0; h.counter.setInvalid();
        m.role = Role.NONE;
    }
// A search continues at the next entry while `retrieve_ptr` is what it has `seen`.
#define SEARCH(seen) AROUND(Op.SWAP); h.round.level = m.level; h.round.left = 0; h.round.word = seen; \
    h.counter.setInvalid(); h.swap.setValid(); h.swap.at = m.next; \
    h.token.setValid(); h.assigned.setValid(); h.origin.setValid(); h.assigned.resources = m.theirs[7:0]
    action swap() { SEARCH(m.next); m.role = Role.TAKE; }
    action swap_on() { SEARCH(m.retrieve); }
    action give_back() { AROUND(Op.BACK); m.role = Role.NONE; }
    action repaired() { DROP; m.role = Role.NONE; }
    action reset() { ANSWER(Op.RESET); m.role = Role.NONE; }
    AT_STAGE(8) table route {
        key = { m.role: ternary; m.status: ternary; m.missing: ternary; m.level: ternary; m.left: ternary; }
        actions = {
            stored_last; stored; full; put_back; given_up; assign; no_op; no_op_task_left; next_level; swap; swap_on;
            give_back; repaired; reset; @defaultonly NoAction;
        }
        // Columns: role, state of the pointers, VALID and what the executor lacks, level, tasks left.
        const entries = {
            (Role.SUBMIT, SPACE, _, _, 1): stored_last();
            (Role.SUBMIT, SPACE, _, _, _): stored();
            (Role.SUBMIT, OVERRUN, _, _, 1): stored_last();
            (Role.SUBMIT, OVERRUN, _, _, _): stored();
            (Role.SUBMIT, _, _, _, _): full();
            (Role.BACK, FULL, _, _, _): given_up();
            (Role.BACK, _, _, _, _): put_back();
            (Role.RETRIEVE, _, 0x100, _, _): assign(Role.TAKE);
            // The entry has no task.
            (Role.RETRIEVE, _, 0 &&& 0x100, 4, _): no_op();
            (Role.RETRIEVE, _, 0 &&& 0x100, _, _): next_level();
            (Role.RETRIEVE, _, _, _, _): swap();
            (Role.SWAP, INSIDE, 0x100, _, _): assign(Role.SWAP);
            // The entry had no task: it gets the search's, and the executor gets none.
            (Role.SWAP, INSIDE, 0 &&& 0x100, _, _): no_op_task_left();
            (Role.SWAP, INSIDE, _, _, _): swap_on();
            (Role.SWAP, _, _, _, _): give_back();
            (Role.OWE_NO_OP, _, _, _, _): no_op();
            (Role.REPAIR_ADD, _, _, _, _): repaired();
            (Role.REPAIR_RETRIEVE, _, _, _, _): repaired();
            (Role.RESET, _, _, _, _): reset();
        }
        const default_action = NoAction;
    }
    // Listing 1, lines 14 and 23: the pointer is repaired, unless a repair is in flight.
    // A search at the tail becomes two packets: one with its task, and an answer for the executor, which gets none.
    action send_repair() { m.copy = m.repair; m.copy_level = m.lvl + 1; SEND_COPY; }
    action send_no_op() { m.copy = Op.OWE_NO_OP; SEND_COPY; }
    AT_STAGE(8) table copies {
        key = { m.role: ternary; m.status: ternary; m.flags: ternary; }
        actions = { send_repair; send_no_op; @defaultonly NoAction; }
        const entries = {
            (Role.SUBMIT, FULL, 0): send_repair();
            (Role.SUBMIT, OVERRUN, 0): send_repair();
            (Role.BACK, FULL, 0): send_repair();
            (Role.BACK, OVERRUN, 0): send_repair();
            (Role.SWAP, TAIL, _): send_no_op();
        }
        const default_action = NoAction;
    }
    apply { copies.apply(); route.apply(); }
}
