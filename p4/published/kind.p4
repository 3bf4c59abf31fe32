// Stage 0: what a packet does, and at which level.
control Kind(inout headers_t h, inout metadata_t m, INTRINSIC) {
// The first entry of the level, and its flags in the bitmap: `add_ptr` is being repaired, `retrieve_ptr` is.
#define LEVEL m.role = role; m.lvl = lvl; m.at = base; m.add_flag = add_flag; m.retrieve_flag = retrieve_flag
    // A SUBMIT comes in: nothing is taken, no record has an index yet.
    action first(bit<8> role, bit<8> lvl, bit<32> base, bit<8> add_flag, bit<8> retrieve_flag) {
        LEVEL; m.left = h.mf.count; h.round.setValid(); h.round.word = 1;
        h.ack.setValid(); h.ack.taken = 0; h.ack.why = 0; h.ack.credit_of = 0; h.ack.index = 255; h.ack.credit = 0;
    }
    action plays(bit<8> role, bit<8> lvl, bit<32> base, bit<8> add_flag, bit<8> retrieve_flag) { LEVEL; }
    // It clears its flag.
    action repairs(bit<8> role, bit<8> lvl, bit<8> flag) { m.role = role; m.lvl = lvl; m.flag = flag; }
    action owes() { m.role = Role.OWE_NO_OP; }
    action to_controller() { h.cpu.setValid(); h.cpu.port = (bit<16>)INGRESS_PORT; OUT_BY(CPU_PORT); }
    action malformed() { DROP; }
#define OF_LEVEL(role, n) role, n - 1, (n - 1) << (CELL_BITS - 2), 1 << (2 * n - 2), 2 << (2 * n - 2)
#define KINDS(n) \
            (Op.SUBMIT, n, _, 1..32, _): first(OF_LEVEL(Role.SUBMIT, n)); \
            (Op.REST, n, _, _, _): plays(OF_LEVEL(Role.SUBMIT, n)); \
            (Op.BACK, _, n, _, _): plays(OF_LEVEL(Role.BACK, n)); \
            (Op.RETRIEVE, _, n, _, _): plays(OF_LEVEL(Role.RETRIEVE, n)); \
            (Op.SWAP, _, n, _, _): plays(OF_LEVEL(Role.SWAP, n)); \
            (Op.REPAIR_ADD, _, n, _, _): repairs(Role.REPAIR_ADD, n - 1, 1 << (2 * n - 2)); \
            (Op.REPAIR_RETRIEVE, _, n, _, _): repairs(Role.REPAIR_RETRIEVE, n - 1, 2 << (2 * n - 2));
    AT_STAGE(0) table kind {
        key = { h.mf.op: ternary; h.task.level: ternary; m.level: ternary; h.mf.count: range; h.task.argument_length: range; }
        actions = { first; plays; repairs; owes; to_controller; malformed; }
        const entries = {
            // Neither up to 16 bytes, nor a reference.
            (Op.SUBMIT, _, _, _, 17..254): malformed();
            (Op.REST, _, _, _, 17..254): malformed();
            KINDS(1) KINDS(2) KINDS(3) KINDS(4)
            (Op.OWE_NO_OP, _, _, _, _): owes();
            (Op.REGISTER, _, _, _, _): to_controller();
            (Op.KEEPALIVE, _, _, _, _): to_controller();
            (Op.RELEASE, _, _, _, _): to_controller();
            (Op.PROBE, _, _, _, _): to_controller();
            (Op.CANCEL, _, _, _, _): to_controller();
        }
        const default_action = malformed();
    }
    apply { kind.apply(); }
}

// All tasks of a SUBMIT count as refused until they are taken.
control Refuse_all(inout headers_t h) {
    action these(bit<32> bitmap) { h.ack.refused = bitmap; }
#define FIRST(n) (n): these((1 << n) - 1);
    table first {
        key = { h.mf.count: exact; }
        actions = { these; @defaultonly NoAction; }
        const entries = {
            FIRST(1) FIRST(2) FIRST(3) FIRST(4) FIRST(5) FIRST(6) FIRST(7) FIRST(8) FIRST(9) FIRST(10) FIRST(11)
            FIRST(12) FIRST(13) FIRST(14) FIRST(15) FIRST(16) FIRST(17) FIRST(18) FIRST(19) FIRST(20) FIRST(21) FIRST(22)
            FIRST(23) FIRST(24) FIRST(25) FIRST(26) FIRST(27) FIRST(28) FIRST(29) FIRST(30) FIRST(31) FIRST(32)
        }
        const default_action = NoAction;
    }
    apply { first.apply(); }
}
