    // The states behind `start`, for both targets. A SUBMIT's other records stay behind the first, unparsed; each pass takes one off.
    // What only the switch itself sends is believed only if it comes by the recirculation port.
    state ethernet {
        packet.extract(h.ethernet);
        transition select(h.ethernet.type) { 0x0800: ip; default: accept; }
    }
    state ip {
        packet.extract(h.ip);
        transition select(h.ip.version_length, h.ip.fragment, h.ip.protocol) { (0x45, 0 &&& 0x3FFF, 17): udp; default: accept; }
    }
    state udp {
        packet.extract(h.udp);
        transition select(h.udp.to) { MF_PORT: mf; default: accept; }
    }
    state mf {
        packet.extract(h.mf);
        m.found = Found.MALFORMED;
        transition select(h.mf.magic, h.mf.version, h.mf.key) {
            (MF_MAGIC, MF_VERSION, 0): kind;
            (MF_MAGIC, MF_VERSION, _): accept;
            (MF_MAGIC, _, _): version;
            default: accept;
        }
    }
    state version {
        m.found = Found.VERSION;
        transition accept;
    }
    state kind {
        m.found = Found.MIDFLIGHT;
        transition select(INGRESS_PORT, h.mf.op) {
            (RECIRCULATION_PORT, Op.REST): rest;
            (RECIRCULATION_PORT, Op.SWAP): swap;
            (RECIRCULATION_PORT, Op.BACK): swap;
            (RECIRCULATION_PORT, Op.OWE_NO_OP): swap;
            (RECIRCULATION_PORT, Op.REPAIR_ADD): repair;
            (RECIRCULATION_PORT, Op.REPAIR_RETRIEVE): repair;
            (RECIRCULATION_PORT, Op.RETRIEVE): again;
            (RECIRCULATION_PORT, _): accept;
            (_, Op.SUBMIT): submit;
            (_, Op.RETRIEVE): retrieve;
            default: accept;
        }
    }
    state submit {
        packet.extract(h.client);
        packet.extract(h.submit);
        packet.extract(h.task);
        transition select(h.mf.count, h.udp.length) { (1, 100): preference; default: accept; }
    }
    state rest {
        packet.extract(h.round);
        packet.extract(h.client);
        packet.extract(h.ack);
        packet.extract(h.submit);
        packet.extract(h.task);
        m.left = h.round.left;
        m.came_from = h.round.came_from;
        m.checked = 1;
        m.formed = 1;
        transition select(h.round.left, h.ack.prefers) { (1, 1): preference; default: accept; }
    }
    state preference {
        packet.extract(h.preference);
        transition accept;
    }
    state retrieve {
        m.level = 1;
        packet.extract(h.counter);
        packet.extract(h.retrieve);
        packet.extract(h.name);
        packet.extract(h.wait);
        transition accept;
    }
    state again {
        packet.extract(h.round);
        m.level = h.round.level;
        m.came_from = h.round.came_from;
        m.checked = 1;
        m.formed = 1;
        packet.extract(h.counter);
        packet.extract(h.retrieve);
        packet.extract(h.name);
        packet.extract(h.wait);
        transition accept;
    }
    state repair {
        packet.extract(h.round);
        m.level = h.round.level;
        m.came_from = h.round.came_from;
        m.checked = 1;
        m.formed = 1;
        transition accept;
    }
    state swap {
        packet.extract(h.round);
        m.level = h.round.level;
        m.came_from = h.round.came_from;
        m.checked = 1;
        m.formed = 1;
        packet.extract(h.counter);
        packet.extract(h.retrieve);
        packet.extract(h.swap);
        packet.extract(h.token);
        packet.extract(h.name);
        packet.extract(h.wait);
        packet.extract(h.assigned);
        transition accept;
    }
