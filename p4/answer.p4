// The end of a pass: the packet leaves as an answer by the port of its request, or recirculates.
#define ANSWER(kind) h.mf.op = kind; m.answer = 1; OUT_BY(m.came_from)
#define AROUND(kind) h.mf.op = kind; h.round.setValid(); h.round.came_from = m.came_from; OUT_BY(RECIRCULATION_PORT)
// Of a SUBMIT: one task is handled; it was taken; the next one is for the next pass.
// `word` is this task's bit in the bitmaps, so it is shifted only after TAKEN: statements run in sequence.
#define COUNTED h.round.left = m.left - 1; h.ack.index = h.ack.index + 1
#define TAKEN COUNTED; h.ack.taken = h.ack.taken | h.round.word
#define NEXT AROUND(Op.REST); h.round.word = h.round.word << 1; h.round.level = 0; m.popped = 1

// Makes an answer, and returns it to the addresses of its request.
control Answer(inout headers_t h, inout metadata_t m) {
// Sets the bytes after the UDP header.
#define BYTES(n) h.udp.length = n + 8; h.ip.length = n + 28
#define WITHOUT_A_QUESTION h.round.setInvalid(); h.retrieve.setInvalid(); h.swap.setInvalid()
    action submit_ack() {
        BYTES(48);
        h.round.setInvalid(); h.submit.setInvalid(); h.task.setInvalid(); h.preference.setInvalid();
        h.ack.credit_of = 0; h.ack.index = 0; h.ack.prefers = 0; h.ack.credit = 0;
    }
    // The client's user and the upper half of its token are not in the entry.
    action assign() {
        BYTES(112); WITHOUT_A_QUESTION; h.counter.setInvalid();
        h.mf.count = 1; h.mf.sequence = 0;
        h.token_high.setValid(); h.token_high.word = 0; h.waited.setValid(); h.waited.time = 0;
        h.assigned.level = m.level;
        h.user.setValid(); h.user.uid = 0xFFFFFFFF; h.user.jid = h.origin.submission;
        // The client's address is IPv4-mapped; `origin` has the rest of it.
        h.user.ip_1 = 0; h.user.ip_2 = 0; h.user.ip_3 = 0xFFFF; h.origin.reserved = 0; h.origin.reserved_2 = 0;
        h.assigned.attempt = h.assigned.attempt |+| 1;
    }
    action no_op() {
        BYTES(36); WITHOUT_A_QUESTION;
        h.counter.setInvalid(); h.token.setInvalid(); h.assigned.setInvalid(); h.origin.setInvalid();
        h.mf.count = 1; h.mf.sequence = 0;
    }
    action reset_slot() { BYTES(44); WITHOUT_A_QUESTION; h.mf.count = 1; h.mf.sequence = 0; }
    action reset_all() {
        BYTES(32); WITHOUT_A_QUESTION; h.name.setInvalid(); h.wait.setInvalid();
        h.mf.count = 0; h.mf.sequence = 0;
    }
    AT_STAGE(11) table shape {
        key = { h.mf.op: exact; m.present: ternary; }
        actions = { submit_ack; assign; no_op; reset_slot; reset_all; @defaultonly NoAction; }
        const entries = {
            (Op.SUBMIT_ACK, _): submit_ack();
            (Op.ASSIGN, _): assign();
            (Op.NO_OP, _): no_op();
            (Op.RESET, 1): reset_slot();
            (Op.RESET, _): reset_all();
        }
        const default_action = NoAction;
    }
    // The controller sets the default action: the switch's epoch.
    action turn_round(bit<32> epoch) {
        bit<48> mac = h.ethernet.from; h.ethernet.from = h.ethernet.to; h.ethernet.to = mac;
        bit<32> ip = h.ip.from; h.ip.from = h.ip.to; h.ip.to = ip;
        bit<16> port = h.udp.from_high ++ h.udp.from_low;
        h.udp.from_high = h.udp.to[15:8]; h.udp.from_low = h.udp.to[7:0]; h.udp.to = port;
        h.ip.hops = 64; h.ip.id = 0; h.ip.service = 0; h.udp.checksum = 0;
        h.mf.epoch = epoch; h.mf.reserved = 0; h.mf.tag = 0;
    }
    AT_STAGE(11) table turn { actions = { turn_round; } default_action = turn_round(0); }
    apply {
        if (m.answer == 1) { shape.apply(); turn.apply(); }
        // The task was read for the last time: removed, so that the next pass finds the next one in its place.
        else if (m.popped == 1) { h.task.setInvalid(); }
    }
}
