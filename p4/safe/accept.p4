// Stages 0 to 2: a packet's role and level; whether a task may enter, and where.

// Stage 0: the role, the level, and the limit of `accepted`. That is `credit_seen`, which may lag behind `credit`;
// a REST that has read `credit` in its last pass updates `credit_seen`.
control Kind(inout headers_t h, inout metadata_t m) {
    SERIAL_REGISTER(credit_seen, bit<2>, 4)
    SERIAL_ACCESS(seen_read, credit_seen, bit<2>, 32, rv = PLAIN(v);)
    SERIAL_ACCESS(seen_newer, credit_seen, bit<2>, 32,
        if (BEFORE(v, SERIAL(h.ack.credit))) { v = SERIAL(h.ack.credit); }
        rv = PLAIN(v);)
    action read(bit<8> role, bit<8> lvl, bit<2> i) { GET(m.limit, seen_read, i); m.role = role; m.lvl = lvl; }
    action update(bit<8> role, bit<8> lvl, bit<2> i) { GET(m.limit, seen_newer, i); m.role = role; m.lvl = lvl; }
    action plays(bit<8> role, bit<8> lvl) { m.role = role; m.lvl = lvl; }
    AT_STAGE(0) table kind {
        key = {
            h.mf.op: ternary; h.task.level: ternary; m.level: ternary; h.ack.credit_of: ternary; h.mf.count: range;
            h.task.argument_length: range;
        }
        actions = { read; update; plays; @defaultonly NoAction; }
        const entries = {
            // An argument that is neither at most 16 bytes long nor a reference (255).
            (Op.SUBMIT, _, _, _, 1..32, 17..254): plays(Role.REFUSE, 0);
            (Op.REST, _, _, _, _, 17..254): plays(Role.REFUSE, 0);
            (Op.SUBMIT, 1, _, _, 1..32, _): read(Role.SUBMIT, 0, 0);
            (Op.SUBMIT, 2, _, _, 1..32, _): read(Role.SUBMIT, 1, 1);
            (Op.SUBMIT, 3, _, _, 1..32, _): read(Role.SUBMIT, 2, 2);
            (Op.SUBMIT, 4, _, _, 1..32, _): read(Role.SUBMIT, 3, 3);
            (Op.SUBMIT, _, _, _, 1..32, _): plays(Role.REFUSE, 0);
            // It has read the credit of its task's level.
            (Op.REST, 1, _, 1, _, _): update(Role.REST, 0, 0);
            (Op.REST, 2, _, 2, _, _): update(Role.REST, 1, 1);
            (Op.REST, 3, _, 3, _, _): update(Role.REST, 2, 2);
            (Op.REST, 4, _, 4, _, _): update(Role.REST, 3, 3);
            (Op.REST, 1, _, _, _, _): read(Role.SUBMIT, 0, 0);
            (Op.REST, 2, _, _, _, _): read(Role.SUBMIT, 1, 1);
            (Op.REST, 3, _, _, _, _): read(Role.SUBMIT, 2, 2);
            (Op.REST, 4, _, _, _, _): read(Role.SUBMIT, 3, 3);
            (Op.REST, _, _, _, _, _): plays(Role.REFUSE, 0);
            (Op.RETRIEVE, _, 1, _, _, _): plays(Role.RETRIEVE, 0);
            (Op.RETRIEVE, _, 2, _, _, _): plays(Role.RETRIEVE, 1);
            (Op.RETRIEVE, _, 3, _, _, _): plays(Role.RETRIEVE, 2);
            (Op.RETRIEVE, _, 4, _, _, _): plays(Role.RETRIEVE, 3);
            (Op.SWAP, _, 1, _, _, _): plays(Role.SWAP, 0);
            (Op.SWAP, _, 2, _, _, _): plays(Role.SWAP, 1);
            (Op.SWAP, _, 3, _, _, _): plays(Role.SWAP, 2);
            (Op.SWAP, _, 4, _, _, _): plays(Role.SWAP, 3);
            (Op.REGISTER, _, _, _, _, _): plays(Role.CONTROL, 0);
            (Op.KEEPALIVE, _, _, _, _, _): plays(Role.CONTROL, 0);
            (Op.RELEASE, _, _, _, _, _): plays(Role.CONTROL, 0);
            (Op.PROBE, _, _, _, _, _): plays(Role.CONTROL, 0);
            (Op.CANCEL, _, _, _, _, _): plays(Role.CONTROL, 0);
        }
        const default_action = NoAction;
    }
    apply { kind.apply(); }
}

// Start of a SUBMIT: nothing is taken or refused yet. `index` is one less than that of its first task, 0.
#define BEGIN m.left = h.mf.count; h.cookie.setInvalid(); h.round.setValid(); h.round.word = 1; \
    h.ack.setValid(); h.ack.taken = 0; h.ack.refused = 0; h.ack.why = 0; h.ack.credit_of = 0; h.ack.index = 255; \
    h.ack.prefers = m.prefers; h.ack.credit = 0

#include "../front.p4"

// Stage 1: accepts one more task within the limit.
control Accept(inout headers_t h, inout metadata_t m) {
    REGISTER(accepted, 32, bit<2>, 4)
    ACCESS(accept_one, accepted, 32, bit<2>, 32, rv = v; if (v != m.limit) { v = v + 1; })
    action accept_it() { GET(m.number, accept_one, m.lvl[1:0]); m.counted = 1; }
    AT_STAGE(1) table accept {
        key = { m.role: exact; m.formed: exact; }
        actions = { accept_it; @defaultonly NoAction; }
        const entries = { (Role.SUBMIT, 1): accept_it(); (Role.REST, 1): accept_it(); }
        const default_action = NoAction;
    }
    apply { accept.apply(); }
}

// Stage 2: the entry of an accepted task. A search at the tail takes this entry for its task.
control Enter(inout headers_t h, inout metadata_t m, INTRINSIC) {
    Judge() judge;
    REGISTER(add_ptr, 32, bit<2>, 4)
    ACCESS(add_more, add_ptr, 32, bit<2>, 32, rv = v; v = v + 4;)
    ACCESS(add_tail, add_ptr, 32, bit<2>, 32, rv = v; if (v == h.swap.at) { v = v + 4; })
#define ENTERS GET(m.at, add_more, m.lvl[1:0]); m.role = Role.STORE
    action enter_first() { ENTERS; BEGIN; }
    action enter_next() { ENTERS; }
    action tail_of() { GET(m.add, add_tail, m.lvl[1:0]); }
    AT_STAGE(2) table enter {
        key = { m.checked: exact; }
        actions = { enter_first; enter_next; @defaultonly NoAction; }
        const entries = { 0: enter_first(); 1: enter_next(); }
        const default_action = NoAction;
    }
    AT_STAGE(2) table tail { actions = { tail_of; } const default_action = tail_of(); }
    apply {
        if (m.role == Role.SWAP) { tail.apply(); }
        else if (m.counted == 1 && m.number != m.limit) { enter.apply(); }
        else { judge.apply(h, m, INTRINSIC_PASSED); }
    }
}
