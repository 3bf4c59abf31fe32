// Forwards other packets to the next hop of their destination; without IP, as a bridge does.
control Forward(inout headers_t h, inout metadata_t m, INTRINSIC) {
    action nowhere() { DROP; }
    action via(bit<16> port, bit<48> to, bit<48> from) {
        OUT_BY(port); h.ethernet.to = to; h.ethernet.from = from; h.ip.hops = h.ip.hops - 1;
    }
    table route {
        key = { h.ip.to: lpm; }
        actions = { via; nowhere; }
        default_action = nowhere();
        size = ROUTES;
    }
    action bridge_to(bit<16> port) { OUT_BY(port); }
    table mac {
        key = { h.ethernet.to: exact; }
        actions = { bridge_to; nowhere; }
        default_action = nowhere();
        size = 4096;
    }
    apply {
        if (!h.ip.isValid()) { mac.apply(); }
        // Checksums are computed without options.
        else if (h.ip.hops > 1 && h.ip.version_length == 0x45) { route.apply(); }
        else { nowhere(); }
    }
}

// Whether a packet to the queue's port is for this switch.
control Own(inout headers_t h, inout metadata_t m) {
    action is_own() { m.own = 1; }
    AT_STAGE(0) table own {
        key = { h.ip.to: exact; }
        actions = { is_own; @defaultonly NoAction; }
        const default_action = NoAction;
        size = 4;
    }
    apply { own.apply(); }
}
