// The safe queue of docs/internals/asic.md for v1model: BMv2's simple_switch. docs/internals/p4.md says how to read it.
#include <core.p4>
#include "target/v1model.p4"
#include "sizes.p4"
#include "headers.p4"
#include "front.p4"
#include "safe/accept.p4"
#include "safe/count.p4"
#include "safe/head.p4"
#include "safe/entry.p4"
#include "safe/route.p4"
#include "answer.p4"
#include "forward.p4"

parser Parse(packet_in packet, out headers_t h, inout metadata_t m, INTRINSIC) {
    state start {
        m.came_from = (bit<16>)INGRESS_PORT;
        transition select(INGRESS_PORT) { CPU_PORT: cpu; default: ethernet; }
    }
    state cpu {
        packet.extract(h.cpu);
        transition accept;
    }
#include "states.p4"
}

control Verify(inout headers_t h, inout metadata_t m) {
    apply {
        verify_checksum(h.ip.isValid() && h.ip.version_length == 0x45,
            { h.ip.version_length, h.ip.service, h.ip.length, h.ip.id, h.ip.fragment, h.ip.hops, h.ip.protocol, h.ip.from, h.ip.to },
            h.ip.checksum, HashAlgorithm.csum16);
    }
}

control Queue(inout headers_t h, inout metadata_t m, INTRINSIC) {
    Kind() kind;
    Look_up() look_up;
    Accept() accept_task;
    Latest() latest;
    Judge() judge;
    Enter() enter;
    Count_1_2() count_1_2;
    Count_3_4() count_3_4;
    Head() head;
    First_words() first_words;
    Words() words;
    Compare() compare;
    Credit() credit;
    Route() route;
    Last_words() last_words;
    Answer() answer;
    apply {
        kind.apply(h, m, INTRINSIC_PASSED);
        look_up.apply(h, m);
        accept_task.apply(h, m);
        latest.apply(h, m);
        judge.apply(h, m, INTRINSIC_PASSED);
        enter.apply(h, m);
        count_1_2.apply(h, m);
        count_3_4.apply(h, m);
        head.apply(h, m);
        first_words.apply(h, m);
        compare.apply(h, m);
        words.apply(h, m);
        credit.apply(h, m);
        route.apply(h, m, INTRINSIC_PASSED);
        last_words.apply(h, m);
        answer.apply(h, m, INTRINSIC_PASSED);
    }
}

control Pipe(inout headers_t h, inout metadata_t m, INTRINSIC) {
    Own() own;
    Queue() queue;
    Forward() forward;
    apply {
        // A packet leaves only where something below says so.
        DROP;
        if (standard.parser_error != error.NoError || standard.checksum_error == 1) { exit; }
        if (h.cpu.isValid()) { OUT_BY(h.cpu.port); h.cpu.setInvalid(); exit; }
        if (m.found != Found.OTHER && m.checked == 0) {
            own.apply(h, m);
            // Shorter than it says: some of its records are missing.
            if (standard.packet_length < 14 + (bit<32>)h.ip.length) { m.found = Found.MALFORMED; }
        }
        if (m.found == Found.MIDFLIGHT) { queue.apply(h, m, INTRINSIC_PASSED); }
        else if (m.found == Found.VERSION) { h.cpu.setValid(); h.cpu.port = m.came_from; OUT_BY(CPU_PORT); }
        else if (m.found == Found.OTHER) { forward.apply(h, m, INTRINSIC_PASSED); }
    }
}

control Leave(inout headers_t h, inout metadata_t m, INTRINSIC) { apply { } }

control Compute(inout headers_t h, inout metadata_t m) {
    apply {
        update_checksum(h.ip.isValid() && h.ip.version_length == 0x45,
            { h.ip.version_length, h.ip.service, h.ip.length, h.ip.id, h.ip.fragment, h.ip.hops, h.ip.protocol, h.ip.from, h.ip.to },
            h.ip.checksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out packet, in headers_t h) { apply { packet.emit(h); } }

V1Switch(Parse(), Verify(), Pipe(), Leave(), Compute(), Deparse()) main;
