    // The states after `start`, for all targets. Of a SUBMIT's tasks only the first is parsed; each pass removes one.
    // Packets that only the switch sends are accepted only from the recirculation port,
    // where no other packet may come from.
    state came_round {
        packet.extract(h.ethernet);
        transition select(h.ethernet.type) { 0x0800: round; default: accept; }
    }
    state round {
        packet.extract(h.ip);
        packet.extract(h.udp);
        packet.extract(h.mf);
        packet.extract(h.round);
        m.found = Found.MIDFLIGHT;
        m.level = h.round.level;
        m.left = h.round.left;
        m.came_from = h.round.came_from;
        m.own = 1;
        m.checked = 1;
        m.formed = 1;
        transition select(h.mf.op) {
            Op.REST: rest;
            Op.RETRIEVE: asked;
            Op.SWAP: search;
            Op.BACK: search;
            Op.OWE_NO_OP: search;
            Op.REPAIR_ADD: accept;
            Op.REPAIR_RETRIEVE: accept;
            default: accept;
        }
    }
    state ethernet {
        m.came_from = (bit<16>)INGRESS_PORT;
        packet.extract(h.ethernet);
        transition select(h.ethernet.type) { 0x0800: ip; default: accept; }
    }
    state ip {
        packet.extract(h.ip);
        CHECK_SUM_OF_IP
        // No options, no fragment, UDP.
        transition select(h.ip.version_length, h.ip.fragment, h.ip.protocol) {
            (0x45, 0 &&& 0x3FFF, 17): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(h.udp);
        transition select(h.udp.to) { MF_PORT: mf; default: accept; }
    }
    // Each path through the states sets `found` once, as Tofino's parser requires.
    state mf {
        packet.extract(h.mf);
        transition select(h.mf.magic, h.mf.version, h.mf.key) {
            (MF_MAGIC, MF_VERSION, 0): kind;
            (MF_MAGIC, MF_VERSION, _): malformed;
            (MF_MAGIC, _, _): version;
            default: malformed;
        }
    }
    state malformed {
        m.found = Found.MALFORMED;
        transition accept;
    }
    state version {
        m.found = Found.VERSION;
        transition accept;
    }
    state kind {
        transition select(h.mf.op) {
            FIRST_OWN_OP &&& 0xF8: malformed;
            Op.SUBMIT: submit;
            Op.RETRIEVE: retrieve;
            default: other;
        }
    }
    state other {
        m.found = Found.MIDFLIGHT;
        transition accept;
    }
    state submit {
        m.found = Found.MIDFLIGHT;
        packet.extract(h.client);
        packet.extract(h.cookie);
        packet.extract(h.submit);
        packet.extract(h.task);
        // With the last task only: a preference follows all tasks.
        transition select(h.mf.count, h.udp.length) { (1, 100): preference; default: accept; }
    }
    state rest {
        packet.extract(h.client);
        packet.extract(h.ack);
        packet.extract(h.submit);
        packet.extract(h.task);
        transition select(h.round.left, h.ack.prefers) { (1, 1): preference; default: accept; }
    }
    state preference {
        packet.extract(h.preference);
        transition accept;
    }
    state retrieve {
        m.found = Found.MIDFLIGHT;
        m.level = 1;
        transition asker;
    }
    state asker {
        packet.extract(h.counter);
        transition asked;
    }
    state asked {
        packet.extract(h.retrieve);
        packet.extract(h.name);
        packet.extract(h.wait);
        transition accept;
    }
    // SWAP, BACK and OWE_NO_OP.
    state search {
        packet.extract(h.retrieve);
        packet.extract(h.swap);
        packet.extract(h.token);
        packet.extract(h.name);
        packet.extract(h.wait);
        packet.extract(h.assigned);
        packet.extract(h.origin);
        transition accept;
    }
