// A switch around a queue on v1model: parser, checksums, destination, deparser.
#include "../forward.p4"

parser Parse(packet_in packet, out headers_t h, inout metadata_t m, INTRINSIC) {
    state start {
        transition select(INGRESS_PORT) { CPU_PORT: cpu; RETURN_PORT: came_round; default: ethernet; }
    }
    state cpu {
        packet.extract(h.cpu);
        transition accept;
    }
#include "../states.p4"
}

// The checksum covers an IP header without options.
#define IP_HAS_NO_OPTIONS h.ip.isValid() && h.ip.version_length == 0x45
#define SUMMED_OF_IP { h.ip.version_length, h.ip.service, h.ip.length, h.ip.id, h.ip.fragment, h.ip.hops, \
    h.ip.protocol, h.ip.from, h.ip.to }

control Verify(inout headers_t h, inout metadata_t m) {
    apply {
        verify_checksum(IP_HAS_NO_OPTIONS, SUMMED_OF_IP, h.ip.checksum, HashAlgorithm.csum16);
    }
}

control Pipe(inout headers_t h, inout metadata_t m, INTRINSIC) {
    Own() own;
    Look() look;
    Queue() queue;
    Forward() forward;
    apply {
        // A packet is dropped unless a statement below sends it.
        DROP;
        m.wrong_sum = standard.checksum_error == 1;
        if (standard.parser_error != error.NoError || m.wrong_sum) { exit; }
        if (h.cpu.isValid()) { OUT_BY(h.cpu.port); h.cpu.setInvalid(); exit; }
        // Any user can make this machine's kernel send packets into a link of the switch,
        // but only to that end itself, or to a group.
        if (m.found != Found.OTHER && (h.ethernet.to == h.ethernet.from || h.ethernet.to[40:40] == 1)) {
            m.found = Found.MALFORMED;
        }
        if (m.found != Found.OTHER && m.checked == 0) {
            own.apply(h, m);
            // Shorter than its length fields: records are missing.
            if (m.own == 1 && standard.packet_length < 14 + (bit<32>)h.ip.length) {
                m.found = Found.MALFORMED;
            }
        }
        if (m.found == Found.MIDFLIGHT) { look.apply(h, m); }
        if (m.own == 0) { forward.apply(h, m, INTRINSIC_PASSED); }
        else if (m.found == Found.MIDFLIGHT) { queue.apply(h, m, INTRINSIC_PASSED); }
        else if (m.found == Found.VERSION) { h.cpu.setValid(); h.cpu.port = m.came_from; TO_CONTROLLER; }
    }
}

control Leave(inout headers_t h, inout metadata_t m, EGRESS) {
    Behind() behind;
    apply { behind.apply(h, m, EGRESS_PASSED); }
}

control Compute(inout headers_t h, inout metadata_t m) {
    apply {
        update_checksum(IP_HAS_NO_OPTIONS, SUMMED_OF_IP, h.ip.checksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out packet, in headers_t h) { apply { packet.emit(h); } }

V1Switch(Parse(), Verify(), Pipe(), Leave(), Compute(), Deparse()) main;
