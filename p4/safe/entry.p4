// Stages 6 to 11: the entries, one register per word.

// The mask of what a task requires comes first: the next two stages depend on it.
control First_words(inout headers_t h, inout metadata_t m) {
    ENTRY(entry_trsrc, 6, 8, h.task.resources, h.assigned.resources)
    ENTRY(entry_uid, 6, 32, h.submit.token, h.token.low)
    // The level ran empty during this search, so there is no exchange. Its next pass is at the tail.
    action ran_empty() { m.role = Role.AGAIN; }
    AT_STAGE(6) table again { actions = { ran_empty; } const default_action = ran_empty(); }
    apply {
        if (m.role == Role.SWAP && m.at == m.add) { again.apply(); }
        else { APPLY(entry_trsrc) APPLY(entry_uid) }
    }
}

control Words(inout headers_t h, inout metadata_t m) {
    ENTRY(entry_jid, 7, 32, h.mf.sequence, h.origin.submission)
    ENTRY(entry_port_high, 7, 8, h.udp.from_high, h.origin.port_high)
    ENTRY(entry_tid, 8, 32, h.task.tid, h.assigned.tid)
    ENTRY(entry_port_low, 8, 8, h.udp.from_low, h.origin.port_low)
    apply { APPLY(entry_jid) APPLY(entry_port_high) APPLY(entry_tid) APPLY(entry_port_low) }
}

// After stage 8, which counts the index.
control Last_words(inout headers_t h, inout metadata_t m) {
    ENTRY(entry_function, 9, 32, h.task.function, h.assigned.function)
    ENTRY(entry_index, 9, 8, h.ack.index, h.origin.index)
    ENTRY(entry_client_ip, 10, 32, h.ip.from, h.origin.client_ip)
    ENTRY(entry_attempt, 10, 8, h.task.attempt, h.assigned.attempt)
    ENTRY(entry_argument, 11, 32, h.task.argument, h.assigned.argument)
    ENTRY(entry_argument_length, 11, 8, h.task.argument_length, h.assigned.argument_length)
    ENTRY(entry_argument_2, 9, 32, h.task.argument_2, h.assigned.argument_2)
    ENTRY(entry_argument_3, 10, 32, h.task.argument_3, h.assigned.argument_3)
    ENTRY(entry_argument_4, 11, 32, h.task.argument_4, h.assigned.argument_4)
    apply {
        APPLY(entry_function) APPLY(entry_index) APPLY(entry_argument_2)
        APPLY(entry_client_ip) APPLY(entry_attempt) APPLY(entry_argument_3)
        APPLY(entry_argument) APPLY(entry_argument_length) APPLY(entry_argument_4)
    }
}
