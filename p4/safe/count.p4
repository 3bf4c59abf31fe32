// Stages 3 and 4: the number of tasks, two levels per stage.
// A RETRIEVE takes one off the first level that has one; a packet that brings a task adds one.

// The counts of two levels, the first in `low`: one register, so that one access reads both.
// `found` says which of them gave a task, one-hot.
#define COUNTS(queued, found) \
    PAIR_REGISTER(queued, bit<1>, 1) \
    PAIR_ACCESS_IT(more_low, queued, bit<1>, v.low = v.low + 1;) \
    PAIR_ACCESS_IT(more_high, queued, bit<1>, v.high = v.high + 1;) \
    PAIR_ACCESS(take_either, queued, bit<1>, PREDICATE_BITS, \
        rv = PREDICATE(v.low != 0, v.high != 0); \
        if (v.low != 0) { v.low = v.low - 1; } else if (v.high != 0) { v.high = v.high - 1; }) \
    PAIR_ACCESS(take_second, queued, bit<1>, PREDICATE_BITS, \
        rv = PREDICATE(false, v.high != 0); \
        if (v.high != 0) { v.high = v.high - 1; }) \
    action store_low() { DO(more_low, 1w0); } \
    action store_high() { DO(more_high, 1w0); } \
    action take() { GET(found, take_either, 1w0); } \
    action take_lower() { GET(found, take_second, 1w0); } \
    action place_low() { DO(more_low, 1w0); m.role = Role.PLACE; m.at = h.swap.at; } \
    action place_high() { DO(more_high, 1w0); m.role = Role.PLACE; m.at = h.swap.at; }

control Count_1_2(inout headers_t h, inout metadata_t m) {
    COUNTS(queued_1_2, m.found_1_2)
    AT_STAGE(3) table count {
        key = { m.role: exact; m.lvl: exact; }
        actions = { store_low; store_high; take; take_lower; @defaultonly NoAction; }
        const entries = {
            (Role.STORE, 0): store_low();
            (Role.STORE, 1): store_high();
            (Role.RETRIEVE, 0): take();
            (Role.RETRIEVE, 1): take_lower();
        }
        const default_action = NoAction;
    }
    // A search at the tail: its task is placed there.
    AT_STAGE(3) table place {
        key = { m.lvl: exact; }
        actions = { place_low; place_high; @defaultonly NoAction; }
        const entries = { (0): place_low(); (1): place_high(); }
        const default_action = NoAction;
    }
    apply {
        if (m.role == Role.SWAP) { if (m.add == h.swap.at) { place.apply(); } }
        else { count.apply(); }
    }
}

control Count_3_4(inout headers_t h, inout metadata_t m) {
    COUNTS(queued_3_4, m.found_3_4)
    // A RETRIEVE of level 1 or 2 only if these have given none (ONE_HOT(1)).
    AT_STAGE(4) table count {
        key = { m.role: exact; m.lvl: exact; m.found_1_2: ternary; }
        actions = { store_low; store_high; take; take_lower; @defaultonly NoAction; }
        const entries = {
            (Role.STORE, 2, _): store_low();
            (Role.STORE, 3, _): store_high();
            (Role.RETRIEVE, 0, ONE_HOT(1)): take();
            (Role.RETRIEVE, 1, ONE_HOT(1)): take();
            (Role.RETRIEVE, 2, _): take();
            (Role.RETRIEVE, 3, _): take_lower();
        }
        const default_action = NoAction;
    }
    AT_STAGE(4) table place {
        key = { m.lvl: exact; }
        actions = { place_low; place_high; @defaultonly NoAction; }
        const entries = { (2): place_low(); (3): place_high(); }
        const default_action = NoAction;
    }
    apply {
        if (m.role == Role.SWAP) { if (m.add == h.swap.at) { place.apply(); } }
        else { count.apply(); }
    }
}
