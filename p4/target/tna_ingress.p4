// Ingress around a queue on TNA: parser, destination, deparser. A previous file defines the values for egress:
// INTO_EGRESS before the queue, HAND_OVER after it, COPYING and COPY in the deparser.
#include "../forward.p4"

@pa_auto_init_metadata
parser Parse(packet_in packet, out headers_t h, out metadata_t m, out ingress_intrinsic_metadata_t arriving) {
    Checksum() sum;
    state start {
        packet.extract(arriving);
        packet.advance(PORT_METADATA_SIZE);
        transition select(INGRESS_PORT) { CPU_PORT: cpu; RECIRCULATION_PORT: came_round; default: ethernet; }
    }
    state cpu {
        packet.extract(h.cpu);
        transition accept;
    }
#include "../states.p4"
}

control Pipe(inout headers_t h, inout metadata_t m, in ingress_intrinsic_metadata_t arriving,
             in ingress_intrinsic_metadata_from_parser_t parsed,
             inout ingress_intrinsic_metadata_for_deparser_t leaving,
             inout ingress_intrinsic_metadata_for_tm_t manager) {
    Own() own;
    Look() look;
    Queue() queue;
    Forward() forward;
    apply {
        manager.bypass_egress = 1;
        if (h.cpu.isValid()) { OUT_BY(h.cpu.port); h.cpu.setInvalid(); }
        else if (m.wrong_sum) { DROP; }
        else {
            if (m.found != Found.OTHER && m.checked == 0) { own.apply(h, m); }
            if (m.found == Found.MIDFLIGHT) { look.apply(h, m); }
            if (m.own == 0) { forward.apply(h, m, INTRINSIC_PASSED); }
            else if (m.found == Found.MIDFLIGHT) { INTO_EGRESS queue.apply(h, m, INTRINSIC_PASSED); HAND_OVER }
            else if (m.found == Found.VERSION) { h.cpu.setValid(); h.cpu.port = m.came_from; OUT_BY(CPU_PORT); }
            else { DROP; }
        }
    }
}

control Deparse(packet_out packet, inout headers_t h, in metadata_t m,
                in ingress_intrinsic_metadata_for_deparser_t leaving) {
    Checksum() sum;
    COPYING
    apply {
        COPY
        if (h.ip.isValid()) { SUM_OF_IP; }
        packet.emit(h);
    }
}
