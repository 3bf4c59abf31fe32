// Stage 5: the entry. A RETRIEVE that got a task takes the level's head, which advances. A search continues at its
// position, or at the head if that has passed it; the cell's second word only serves to compute which is later.
control Head(inout headers_t h, inout metadata_t m) {
    SERIAL_PAIR_REGISTER(retrieve_ptr, bit<2>, 4)
    SERIAL_PAIR_ACCESS(head_take, retrieve_ptr, bit<2>, 32, rv = PLAIN(v.low); v.low = v.low + 4;)
    SERIAL_PAIR_ACCESS(head_later, retrieve_ptr, bit<2>, 32,
        if (BEFORE(v.low, SERIAL(h.swap.at))) { v.high = SERIAL(h.swap.at); } else { v.high = v.low; }
        rv = PLAIN(v.high);)
    action take(bit<2> i, bit<8> level, bit<8> lvl) {
        GET(m.at, head_take, i); m.role = Role.TAKE; m.level = level; m.lvl = lvl;
        h.token.setValid(); h.assigned.setValid(); h.origin.setValid(); h.swap.setValid();
    }
    action later() { GET(m.at, head_later, m.lvl[1:0]); }
    AT_STAGE(5) table retrieve {
        key = { m.found_1_2: ternary; m.found_3_4: ternary; }
        actions = { take; NoAction; }
        const entries = {
            (ONE_HOT(1), ONE_HOT(1)): NoAction();
            (ONE_HOT(1), ONE_HOT(2 | 8)): take(2, 3, 2);
            (ONE_HOT(1), ONE_HOT(4)): take(3, 4, 3);
            (ONE_HOT(2 | 8), _): take(0, 1, 0);
            (ONE_HOT(4), _): take(1, 2, 1);
        }
        const default_action = NoAction;
    }
    AT_STAGE(5) table search { actions = { later; } const default_action = later(); }
    apply {
        if (m.role == Role.SWAP) { search.apply(); }
        else if (m.role == Role.RETRIEVE) { retrieve.apply(); }
    }
}
