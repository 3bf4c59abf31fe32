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
    // Each way sets `found` once.
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
        transition select(INGRESS_PORT, h.mf.op) {
            (RECIRCULATION_PORT, FIRST_OWN_OP &&& 0xF8): round;
            (RECIRCULATION_PORT, Op.RETRIEVE): round;
            (RECIRCULATION_PORT, _): malformed;
            (_, FIRST_OWN_OP &&& 0xF8): malformed;
            (_, Op.SUBMIT): submit;
            (_, Op.RETRIEVE): retrieve;
            default: other;
        }
    }
    state other {
        m.found = Found.MIDFLIGHT;
        transition accept;
    }
    state round {
        m.found = Found.MIDFLIGHT;
        packet.extract(h.round);
        m.level = h.round.level;
        m.left = h.round.left;
        m.came_from = h.round.came_from;
        m.checked = 1;
        m.formed = 1;
        transition select(h.mf.op) {
            Op.REST: rest;
            Op.RETRIEVE: asker;
            Op.REPAIR_ADD: accept;
            Op.REPAIR_RETRIEVE: accept;
            default: search;
        }
    }
    state submit {
        m.found = Found.MIDFLIGHT;
        packet.extract(h.client);
        packet.extract(h.submit);
        packet.extract(h.task);
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
        packet.extract(h.retrieve);
        packet.extract(h.name);
        packet.extract(h.wait);
        transition accept;
    }
    // SWAP, and what becomes of one.
    state search {
        packet.extract(h.counter);
        packet.extract(h.retrieve);
        packet.extract(h.swap);
        packet.extract(h.token);
        packet.extract(h.name);
        packet.extract(h.wait);
        packet.extract(h.assigned);
        transition accept;
    }
