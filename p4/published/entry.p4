// Egress: the entries, and the handling of copies.

control Entries(inout headers_t h, inout metadata_t m) {
    ENTRY(tid, 0, 32, h.task.tid, h.assigned.tid)
    ENTRY(uid, 1, 32, h.submit.token, h.token.low)
    ENTRY(jid, 2, 32, h.mf.sequence, h.origin.submission)
    ENTRY(function, 3, 32, h.task.function, h.assigned.function)
    ENTRY(client_port_high, 4, 8, h.udp.from_high, h.origin.port_high)
    ENTRY(client_port_low, 4, 8, h.udp.from_low, h.origin.port_low)
    ENTRY(argument, 5, 32, h.task.argument, h.assigned.argument)
    ENTRY(argument_2, 6, 32, h.task.argument_2, h.assigned.argument_2)
    ENTRY(argument_3, 7, 32, h.task.argument_3, h.assigned.argument_3)
    ENTRY(argument_4, 8, 32, h.task.argument_4, h.assigned.argument_4)
    ENTRY(client_ip, 9, 32, h.ip.from, h.origin.client_ip)
    ENTRY(index, 10, 8, h.ack.index, h.origin.index)
    ENTRY(attempt, 10, 8, h.task.attempt, h.assigned.attempt)
    ENTRY(argument_length, 10, 8, h.task.argument_length, h.assigned.argument_length)
    apply {
        APPLY(tid) APPLY(uid) APPLY(jid) APPLY(function) APPLY(client_port_high) APPLY(client_port_low)
        APPLY(argument) APPLY(argument_2) APPLY(argument_3) APPLY(argument_4)
        APPLY(client_ip) APPLY(index) APPLY(attempt) APPLY(argument_length)
    }
}

// A copy is the packet as it came. Bytes after a repair's header are unused and stay.
control Copy(inout headers_t h, inout metadata_t m) {
    action repair() {
        h.mf.op = m.copy; h.round.setValid(); h.round.came_from = 0; h.round.level = m.copy_level; h.round.left = 0;
        h.round.word = m.add;
    }
    action owed_no_op() { h.mf.op = m.copy; }
    apply {
        if (m.copy == Op.OWE_NO_OP) { owed_no_op(); } else { repair(); }
    }
}
