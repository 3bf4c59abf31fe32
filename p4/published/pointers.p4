// Stages 3 to 5, after the checks of front.p4: the pointers and their state. Line numbers are of Falcon's listings.

// Stage 3 (listing 1, lines 2 and 3; listing 2, line 2; listing 3, lines 9 and 13).
control Pointers(inout headers_t h, inout metadata_t m) {
    REGISTER(add_ptr, 32, bit<2>, 4)
    ACCESS(add_next, add_ptr, 32, bit<2>, 32, rv = v; v = v + 1;)
    ACCESS(add_now, add_ptr, 32, bit<2>, 32, rv = v;)
    ACCESS_IT(add_set, add_ptr, 32, bit<2>, v = h.round.word;)
    action add_more() { GET(m.add, add_next, m.lvl[1:0]); }
    action add_read() { GET(m.add, add_now, m.lvl[1:0]); }
    action add_repair() { DO(add_set, m.lvl[1:0]); }
    AT_STAGE(3) table add {
        key = { m.role: exact; }
        actions = { add_more; add_read; add_repair; @defaultonly NoAction; }
        const entries = {
            (Role.SUBMIT): add_more();
            (Role.BACK): add_more();
            (Role.SWAP): add_read();
            (Role.REPAIR_ADD): add_repair();
        }
        const default_action = NoAction;
    }
    REGISTER(retrieve_ptr, 32, bit<2>, 4)
    ACCESS(retrieve_next, retrieve_ptr, 32, bit<2>, 32, rv = v; v = v + 1;)
    ACCESS(retrieve_now, retrieve_ptr, 32, bit<2>, 32, rv = v;)
    ACCESS_IT(retrieve_set, retrieve_ptr, 32, bit<2>, v = h.round.word;)
    action retrieve_more() { GET(m.retrieve, retrieve_next, m.lvl[1:0]); }
    action retrieve_read() { GET(m.retrieve, retrieve_now, m.lvl[1:0]); }
    action retrieve_repair() { DO(retrieve_set, m.lvl[1:0]); }
    AT_STAGE(3) table retrieve {
        key = { m.role: exact; }
        actions = { retrieve_more; retrieve_read; retrieve_repair; @defaultonly NoAction; }
        const entries = {
            (Role.RETRIEVE): retrieve_more();
            (Role.SUBMIT): retrieve_read();
            (Role.BACK): retrieve_read();
            (Role.SWAP): retrieve_read();
            (Role.REPAIR_RETRIEVE): retrieve_repair();
        }
        const default_action = NoAction;
    }
    // A cell of `is_valid`: VALID and the mask of what the task requires.
    action mine_is_new() { m.mine = 8w1 ++ h.task.resources; }
    action mine_is_carried() { m.mine = 8w1 ++ h.assigned.resources; m.has = 8w0 ++ h.retrieve.resources; }
    action it_has() { m.has = 8w0 ++ h.retrieve.resources; }
    AT_STAGE(3) table mine {
        key = { m.role: exact; }
        actions = { mine_is_new; mine_is_carried; it_has; @defaultonly NoAction; }
        const entries = {
            (Role.SUBMIT): mine_is_new();
            (Role.RETRIEVE): it_has();
            (Role.BACK): mine_is_carried();
            (Role.SWAP): mine_is_carried();
        }
        const default_action = NoAction;
    }
    apply { add.apply(); retrieve.apply(); mine.apply(); }
}

// Stage 4: distances, and the packet's entry. A search restarts if its `retrieve_ptr` has moved.
control Distances(inout headers_t h, inout metadata_t m) {
    action subtract() { m.length = m.add - m.retrieve; m.ahead = m.add - h.swap.at; }
    AT_STAGE(4) table distance { actions = { subtract; } const default_action = subtract(); }
    action at_tail() { m.pointer = m.add; }
    action at_head() { m.pointer = m.retrieve; }
    action at_place() { m.pointer = h.swap.at; }
    AT_STAGE(4) table submitted { actions = { at_tail; } const default_action = at_tail(); }
    AT_STAGE(4) table first { actions = { at_head; } const default_action = at_head(); }
    AT_STAGE(4) table goes_on { actions = { at_place; } const default_action = at_place(); }
    apply {
        distance.apply();
        if (m.role == Role.SUBMIT || m.role == Role.BACK) { submitted.apply(); }
        else if (m.role == Role.SWAP && h.round.word == m.retrieve) { goes_on.apply(); }
        else { first.apply(); }
    }
}

// Stage 5: the meaning of the distances (listing 1, lines 4, 7 and 17).
// In tables, because a condition of `if` may not contain a difference.
control Status(inout headers_t h, inout metadata_t m) {
#define NEGATIVE (1 << 31) &&& (1 << 31)
    action space() { m.status = SPACE; }
    action full() { m.status = FULL; m.flag = m.add_flag; m.repair = Op.REPAIR_ADD; }
    action overrun() { m.status = OVERRUN; m.flag = m.retrieve_flag; m.repair = Op.REPAIR_RETRIEVE; }
    AT_STAGE(5) table status {
        key = { m.length: ternary; }
        actions = { space; full; overrun; }
        const entries = { (NEGATIVE): overrun(); (0 &&& (0xFFFFFFFF << (CELL_BITS - 2) & 0xFFFFFFFF)): space(); }
        const default_action = full();
    }
    action inside() { m.status = INSIDE; }
    action tail() { m.status = TAIL; }
    AT_STAGE(5) table place {
        key = { m.ahead: ternary; }
        actions = { inside; tail; }
        const entries = { (NEGATIVE): tail(); (0): tail(); }
        const default_action = inside();
    }
    AT_STAGE(5) table head {
        key = { m.length: ternary; }
        actions = { inside; tail; }
        const entries = { (NEGATIVE): tail(); (0): tail(); }
        const default_action = inside();
    }
    // The entry's number among those of all levels.
    action to_entry() { m.at[CELL_BITS - 3:0] = m.pointer[CELL_BITS - 3:0]; m.next = m.pointer + 1; }
    AT_STAGE(5) table number { actions = { to_entry; } const default_action = to_entry(); }
    apply {
        if (m.role == Role.SUBMIT || m.role == Role.BACK) { status.apply(); }
        else if (m.role == Role.SWAP) {
            if (h.round.word == m.retrieve) { place.apply(); } else { head.apply(); }
        }
        number.apply();
    }
}
