// Stages 6 and 7: whether the entry has a task (listing 1, line 5; listing 2, lines 3 and 4);
// whether a repair is in flight (listing 1, lines 9 and 19; listing 3, lines 10 and 14).

const bit<16> VALID = 0x100;

control Guard(inout headers_t h, inout metadata_t m) {
    REGISTER(is_valid, 16, bit<CELL_BITS>, CELLS)
    ACCESS_IT(valid_set, is_valid, 16, bit<CELL_BITS>, v = m.mine;)
    ACCESS(valid_take, is_valid, 16, bit<CELL_BITS>, 16, rv = v; v = v & ~VALID;)
    ACCESS(valid_swap, is_valid, 16, bit<CELL_BITS>, 16, rv = v; v = m.mine;)
    action store() { DO(valid_set, m.at[CELL_BITS - 1:0]); }
    action read_and_set() { GET(m.theirs, valid_take, m.at[CELL_BITS - 1:0]); }
    action exchange() { GET(m.theirs, valid_swap, m.at[CELL_BITS - 1:0]); }
    AT_STAGE(6) table valid {
        key = { m.role: exact; m.status: exact; }
        actions = { store; read_and_set; exchange; @defaultonly NoAction; }
        const entries = {
            (Role.SUBMIT, SPACE): store();
            (Role.SUBMIT, OVERRUN): store();
            (Role.BACK, SPACE): store();
            (Role.BACK, OVERRUN): store();
            (Role.RETRIEVE, 0): read_and_set();
            (Role.SWAP, INSIDE): exchange();
        }
        const default_action = NoAction;
    }
    REGISTER(is_repairing, 8, bit<1>, 1)
    ACCESS(flag_raise, is_repairing, 8, bit<1>, 8, rv = v; v = v | m.flag;)
    ACCESS_IT(flag_clear, is_repairing, 8, bit<1>, v = v & ~m.flag;)
    action raise() { GET(m.flags, flag_raise, 1w0); }
    action clear() { DO(flag_clear, 1w0); }
    AT_STAGE(6) table repairing {
        key = { m.role: exact; m.status: exact; }
        actions = { raise; clear; @defaultonly NoAction; }
        const entries = {
            (Role.SUBMIT, FULL): raise();
            (Role.SUBMIT, OVERRUN): raise();
            (Role.BACK, FULL): raise();
            (Role.BACK, OVERRUN): raise();
            (Role.REPAIR_ADD, 0): clear();
            (Role.REPAIR_RETRIEVE, 0): clear();
        }
        const default_action = NoAction;
    }
    // Whether there is a task, and what the executor lacks; whether this flag was set (listing 1, lines 10 and 20).
    action compare_both() { m.missing = m.theirs & ~m.has; m.flags = m.flags & m.flag; }
    AT_STAGE(7) table compare { actions = { compare_both; } const default_action = compare_both(); }
    apply { valid.apply(); repairing.apply(); compare.apply(); }
}
