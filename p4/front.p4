// Checks before the queue changes anything for a packet: its length must match its count.
// A RETRIEVE must have the current epoch, come from its slot's address, and be later than that slot's last one.
// Stages 0 to 2, because the first change for a RETRIEVE is in stage 3.

// A SUBMIT of n tasks, of 28 bytes each: lengths by IP and by UDP; the same with a preference of 8 bytes.
#define LENGTHS(n) \
            (Op.SUBMIT, n, 84 + 28 * n, 64 + 28 * n): plain(); \
            (Op.SUBMIT, n, 92 + 28 * n, 72 + 28 * n): with_preference();

// Stage 0. The controller fills `own`, `epoch` and `slot`.
control Look_up(inout headers_t h, inout metadata_t m) {
    action plain() { m.formed = 1; }
    action with_preference() { m.formed = 1; m.prefers = 1; }
    action one_wait() { m.formed = 1; }
    // A RETRIEVE asks for one slot only, because a packet gets one answer.
    AT_STAGE(0) table form {
        key = { h.mf.op: exact; h.mf.count: exact; h.ip.length: exact; h.udp.length: exact; }
        actions = { plain; with_preference; one_wait; @defaultonly NoAction; }
        const entries = {
            (Op.RETRIEVE, 1, 80, 60): one_wait();
            LENGTHS(1) LENGTHS(2) LENGTHS(3) LENGTHS(4) LENGTHS(5) LENGTHS(6) LENGTHS(7) LENGTHS(8)
            LENGTHS(9) LENGTHS(10) LENGTHS(11) LENGTHS(12) LENGTHS(13) LENGTHS(14) LENGTHS(15) LENGTHS(16)
            LENGTHS(17) LENGTHS(18) LENGTHS(19) LENGTHS(20) LENGTHS(21) LENGTHS(22) LENGTHS(23) LENGTHS(24)
            LENGTHS(25) LENGTHS(26) LENGTHS(27) LENGTHS(28) LENGTHS(29) LENGTHS(30) LENGTHS(31) LENGTHS(32)
        }
        const default_action = NoAction;
    }
    action is_present() { m.present = 1; }
    AT_STAGE(0) table epoch {
        key = { h.mf.epoch: exact; }
        actions = { is_present; @defaultonly NoAction; }
        const default_action = NoAction;
        size = 2;
    }
    action is_known() { m.known = 1; }
    AT_STAGE(0) table slot {
        key = {
            h.name.slot: exact; h.name.generation: exact;
            h.ip.from: exact; h.udp.from_high: exact; h.udp.from_low: exact;
        }
        actions = { is_known; @defaultonly NoAction; }
        const default_action = NoAction;
        size = SLOTS;
    }
    apply {
        if (m.checked == 0) { form.apply(); }
        epoch.apply();
        // A recirculated RETRIEVE has no counter.
        if (h.counter.isValid()) { slot.apply(); }
    }
}

// Stage 1: whether a RETRIEVE is later than its slot's last one; if so, stores its counter.
// The controller sets a slot's counter at registration.
control Latest(inout headers_t h, inout metadata_t m) {
    SERIAL_REGISTER(last_counter, bit<SLOT_BITS>, SLOTS)
    SERIAL_ACCESS(later, last_counter, bit<SLOT_BITS>, PREDICATE_BITS,
        rv = PREDICATE(BEFORE(v, SERIAL(h.counter.low)), false);
        if (BEFORE(v, SERIAL(h.counter.low))) { v = SERIAL(h.counter.low); })
    action is_later() { GET(m.fresh, later, h.name.slot[SLOT_BITS - 1:0]); }
    AT_STAGE(1) table compare {
        key = { m.role: exact; m.checked: exact; m.formed: exact; m.present: exact; m.known: exact; }
        actions = { is_later; @defaultonly NoAction; }
        const entries = { (Role.RETRIEVE, 0, 1, 1, 1): is_later(); }
        const default_action = NoAction;
    }
    apply { compare.apply(); }
}

// Stage 2: drops malformed packets and copies of earlier RETRIEVEs; answers an unregistered slot by RESET.
// A SUBMIT gets the headers for recirculation (BEGIN: the first change of a header).
// In the safe program `Enter` does this for a SUBMIT whose first task was accepted.
control Judge(inout headers_t h, inout metadata_t m, INTRINSIC) {
    action go_on() { }
    action begins() { BEGIN; }
    action reset() { m.role = Role.RESET; }
    action nothing() { m.role = Role.NONE; DROP; }
    action to_controller() { h.cpu.setValid(); h.cpu.port = m.came_from; TO_CONTROLLER; }
    AT_STAGE(2) table judge {
        key = {
            m.role: ternary; m.formed: ternary; m.checked: ternary;
            m.present: ternary; m.known: ternary; m.fresh: ternary;
        }
        actions = { go_on; begins; reset; nothing; to_controller; @defaultonly NoAction; }
        const entries = {
            (Role.NONE, _, _, _, _, _): nothing();
            (Role.CONTROL, _, _, _, _, _): to_controller();
            (_, 0, _, _, _, _): nothing();
            (_, _, 1, _, _, _): go_on();
            (Role.SUBMIT, _, _, _, _, _): begins();
            (Role.REFUSE, _, _, _, _, _): begins();
            // ONE_HOT(2): later.
            (Role.RETRIEVE, _, _, 1, 1, ONE_HOT(2)): go_on();
            (Role.RETRIEVE, _, _, 1, 1, _): nothing();
            (Role.RETRIEVE, _, _, _, _, _): reset();
        }
        const default_action = NoAction;
    }
    apply { judge.apply(); }
}
