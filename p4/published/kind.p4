// Stage 0: a packet's role and level.
control Kind(inout headers_t h, inout metadata_t m) {
// The first entry of the level, and its flags in the bitmap: `add_ptr` is in repair, `retrieve_ptr` is.
#define LEVEL m.role = role; m.lvl = lvl; m.at = base; m.add_flag = add_flag; m.retrieve_flag = retrieve_flag
    action plays(bit<8> role, bit<8> lvl, bit<32> base, bit<8> add_flag, bit<8> retrieve_flag) { LEVEL; }
    // Clears this flag of `is_repairing`.
    action repairs(bit<8> role, bit<8> lvl, bit<8> flag) { m.role = role; m.lvl = lvl; m.flag = flag; }
    action owes() { m.role = Role.OWE_NO_OP; }
    action control_it() { m.role = Role.CONTROL; }
// Arguments of `plays` for level n.
#define OF_LEVEL(role, n) role, n - 1, (n - 1) << (CELL_BITS - 2), 1 << (2 * n - 2), 2 << (2 * n - 2)
#define KINDS(n) \
            (Op.SUBMIT, n, _, 1..32, _): plays(OF_LEVEL(Role.SUBMIT, n)); \
            (Op.REST, n, _, _, _): plays(OF_LEVEL(Role.SUBMIT, n)); \
            (Op.BACK, _, n, _, _): plays(OF_LEVEL(Role.BACK, n)); \
            (Op.RETRIEVE, _, n, _, _): plays(OF_LEVEL(Role.RETRIEVE, n)); \
            (Op.SWAP, _, n, _, _): plays(OF_LEVEL(Role.SWAP, n)); \
            (Op.REPAIR_ADD, _, n, _, _): repairs(Role.REPAIR_ADD, n - 1, 1 << (2 * n - 2)); \
            (Op.REPAIR_RETRIEVE, _, n, _, _): repairs(Role.REPAIR_RETRIEVE, n - 1, 2 << (2 * n - 2));
    AT_STAGE(0) table kind {
        key = {
            h.mf.op: ternary; h.task.level: ternary; m.level: ternary; h.mf.count: range; h.task.argument_length: range;
        }
        actions = { plays; repairs; owes; control_it; NoAction; }
        const entries = {
            // An argument that is neither at most 16 bytes long nor a reference (255).
            (Op.SUBMIT, _, _, _, 17..254): NoAction();
            (Op.REST, _, _, _, 17..254): NoAction();
            KINDS(1) KINDS(2) KINDS(3) KINDS(4)
            (Op.OWE_NO_OP, _, _, _, _): owes();
            (Op.REGISTER, _, _, _, _): control_it();
            (Op.KEEPALIVE, _, _, _, _): control_it();
            (Op.RELEASE, _, _, _, _): control_it();
            (Op.PROBE, _, _, _, _): control_it();
            (Op.CANCEL, _, _, _, _): control_it();
        }
        const default_action = NoAction;
    }
    apply { kind.apply(); }
}

// Start of a SUBMIT: nothing is taken yet. `index` is one less than that of its first task, 0.
#define BEGIN m.left = h.mf.count; h.cookie.setInvalid(); h.round.setValid(); h.round.word = 1; \
    h.ack.setValid(); h.ack.taken = 0; h.ack.why = 0; h.ack.credit_of = 0; h.ack.index = 255; \
    h.ack.prefers = m.prefers; h.ack.credit = 0

// All tasks of a SUBMIT count as refused until taken.
control Refuse_all(inout headers_t h) {
    action these(bit<32> bitmap) { h.ack.refused = bitmap; }
#define FIRST(n) (n): these((1 << n) - 1);
    table first {
        key = { h.mf.count: exact; }
        actions = { these; @defaultonly NoAction; }
        const entries = {
            FIRST(1) FIRST(2) FIRST(3) FIRST(4) FIRST(5) FIRST(6) FIRST(7) FIRST(8) FIRST(9) FIRST(10) FIRST(11)
            FIRST(12) FIRST(13) FIRST(14) FIRST(15) FIRST(16) FIRST(17) FIRST(18) FIRST(19) FIRST(20) FIRST(21)
            FIRST(22) FIRST(23) FIRST(24) FIRST(25) FIRST(26) FIRST(27) FIRST(28) FIRST(29) FIRST(30) FIRST(31)
            FIRST(32)
        }
        const default_action = NoAction;
    }
    apply { first.apply(); }
}
