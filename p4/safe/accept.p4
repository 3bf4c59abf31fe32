// Stages 0 to 2: what a packet does and at which level; whether a task may enter, and where.

// Stage 0. The limit of `accepted` is a lagging copy of `credit`, or what a packet knows that has read `credit` (see route.p4).
control Kind(inout headers_t h, inout metadata_t m, INTRINSIC) {
    SERIAL_REGISTER(credit_seen, bit<2>, 4)
    SERIAL_ACCESS(seen_read, credit_seen, bit<2>, 32, rv = PLAIN(v);)
    SERIAL_ACCESS(seen_newer, credit_seen, bit<2>, 32,
        if (BEFORE(v, SERIAL(h.ack.credit))) { v = SERIAL(h.ack.credit); }
        rv = PLAIN(v);)
// A SUBMIT comes in: nothing is taken, nothing is refused, no record has an index yet.
#define FRESH m.role = role; m.left = h.mf.count; h.round.setValid(); h.round.word = 1; \
    h.ack.setValid(); h.ack.taken = 0; h.ack.refused = 0; h.ack.why = 0; h.ack.credit_of = 0; h.ack.index = 255; h.ack.credit = 0
    action first(bit<8> role, bit<8> lvl, bit<2> i) { GET(m.limit, seen_read, i); m.lvl = lvl; FRESH; }
    action first_refused(bit<8> role) { FRESH; }
    action update(bit<8> role, bit<8> lvl, bit<2> i) { GET(m.limit, seen_newer, i); m.role = role; m.lvl = lvl; }
    action read(bit<8> role, bit<8> lvl, bit<2> i) { GET(m.limit, seen_read, i); m.role = role; m.lvl = lvl; }
    action plays(bit<8> role, bit<8> lvl) { m.role = role; m.lvl = lvl; }
    action to_controller() { h.cpu.setValid(); h.cpu.port = (bit<16>)INGRESS_PORT; OUT_BY(CPU_PORT); }
    action malformed() { DROP; }
    AT_STAGE(0) table kind {
        key = {
            h.mf.op: ternary; h.task.level: ternary; m.level: ternary; h.ack.credit_of: ternary; h.mf.count: range;
            h.task.argument_length: range;
        }
        actions = { first; first_refused; update; read; plays; to_controller; malformed; }
        const entries = {
            // Neither up to 16 bytes, nor a reference.
            (Op.SUBMIT, _, _, _, 1..32, 17..254): first_refused(Role.REFUSE);
            (Op.REST, _, _, _, _, 17..254): plays(Role.REFUSE, 0);
            (Op.SUBMIT, 1, _, _, 1..32, _): first(Role.SUBMIT, 0, 0);
            (Op.SUBMIT, 2, _, _, 1..32, _): first(Role.SUBMIT, 1, 1);
            (Op.SUBMIT, 3, _, _, 1..32, _): first(Role.SUBMIT, 2, 2);
            (Op.SUBMIT, 4, _, _, 1..32, _): first(Role.SUBMIT, 3, 3);
            (Op.SUBMIT, _, _, _, 1..32, _): first_refused(Role.REFUSE);
            // It has read the credit of this level.
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
            (Op.REGISTER, _, _, _, _, _): to_controller();
            (Op.KEEPALIVE, _, _, _, _, _): to_controller();
            (Op.RELEASE, _, _, _, _, _): to_controller();
            (Op.PROBE, _, _, _, _, _): to_controller();
            (Op.CANCEL, _, _, _, _, _): to_controller();
        }
        const default_action = malformed();
    }
    apply { kind.apply(); }
}

// Stage 1: counts one more task, unless that is beyond the limit.
control Accept(inout headers_t h, inout metadata_t m) {
    REGISTER(accepted, 32, bit<2>, 4)
    ACCESS(accept_one, accepted, 32, bit<2>, 32, rv = v; if (v != m.limit) { v = v + 1; })
    action accept_it() { GET(m.number, accept_one, m.lvl[1:0]); }
    AT_STAGE(1) table accept {
        key = { m.role: exact; m.formed: exact; }
        actions = { accept_it; @defaultonly NoAction; }
        const entries = { (Role.SUBMIT, 1): accept_it(); (Role.REST, 1): accept_it(); }
        const default_action = NoAction;
    }
    apply { accept.apply(); }
}

// Stage 2: where an accepted task goes; whether a search has reached the tail, whose place it then takes.
control Enter(inout headers_t h, inout metadata_t m) {
    REGISTER(add_ptr, 32, bit<2>, 4)
    ACCESS(add_more, add_ptr, 32, bit<2>, 32, rv = v; v = v + 4;)
    ACCESS(add_tail, add_ptr, 32, bit<2>, 32, rv = v; if (v == h.swap.at) { v = v + 4; })
    action enter_it() { GET(m.at, add_more, m.lvl[1:0]); m.role = Role.STORE; }
    action tail_of() { GET(m.add, add_tail, m.lvl[1:0]); }
    AT_STAGE(2) table enter {
        key = { m.role: exact; }
        actions = { enter_it; @defaultonly NoAction; }
        const entries = { (Role.SUBMIT): enter_it(); (Role.REST): enter_it(); }
        const default_action = NoAction;
    }
    AT_STAGE(2) table tail { actions = { tail_of; } const default_action = tail_of(); }
    apply {
        if (m.role == Role.SWAP) { tail.apply(); }
        else if (m.number != m.limit) { enter.apply(); }
    }
}
