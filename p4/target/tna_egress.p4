// Egress of a program that goes on there. It starts without metadata and parses the packet anew: what it needs of ingress is in a header
// in front, as is what goes with a copy.
const bit<8> OF_INGRESS = 1;
const bit<8> OF_COPY = 2;
header copied_h { bit<8> kind; bit<8> copy; bit<8> level; bit<8> reserved; bit<32> add; }

#define INTO_EGRESS manager.bypass_egress = 0; h.handed_over.setValid(); h.handed_over.kind = OF_INGRESS;
#define HAND_OVER Hand_over.apply(h, m);
#define COPYING Mirror(COPY_TYPE) mirror;
#define COPY \
    if (leaving.mirror_type == COPY_TYPE) { mirror.emit<copied_h>(COPY_SESSION, { OF_COPY, m.copy, m.copy_level, 0, m.add }); }

control Hand_over(inout headers_t h, inout metadata_t m) {
    apply {
        h.handed_over.role = m.role;
        h.handed_over.level = m.level;
        h.handed_over.left = m.left;
        h.handed_over.at = m.at;
        h.handed_over.answer = m.answer;
        h.handed_over.present = m.present;
        h.handed_over.popped = m.popped;
        if (h.round.isValid()) { h.handed_over.round = 1; }
        if (h.swap.isValid()) { h.handed_over.swap = 1; }
        if (h.assigned.isValid()) { h.handed_over.assigned = 1; }
    }
}
#include "tna_ingress.p4"

@pa_auto_init_metadata
parser Parse_again(packet_in packet, out headers_t h, out metadata_t m, out egress_intrinsic_metadata_t at) {
    copied_h copied;
    state start {
        packet.extract(at);
        transition select(packet.lookahead<bit<8>>()) { OF_INGRESS: handed_over; OF_COPY: copy; default: reject; }
    }
    state handed_over {
        packet.extract(h.handed_over);
        m.role = h.handed_over.role;
        m.level = h.handed_over.level;
        m.at = h.handed_over.at;
        m.answer = h.handed_over.answer;
        m.present = h.handed_over.present;
        m.popped = h.handed_over.popped;
        transition headers;
    }
    state headers {
        packet.extract(h.ethernet);
        packet.extract(h.ip);
        packet.extract(h.udp);
        packet.extract(h.mf);
        transition select(h.handed_over.round) { 1: round; default: behind_round; }
    }
    state round {
        packet.extract(h.round);
        transition behind_round;
    }
    state behind_round {
        transition select(h.mf.op) { Op.SUBMIT_ACK: submit; Op.REST: submit; default: asker; }
    }
    state submit {
        packet.extract(h.client);
        packet.extract(h.ack);
        packet.extract(h.submit);
        packet.extract(h.task);
        transition select(h.handed_over.left, h.ack.prefers) { (1, 1): preference; default: accept; }
    }
    state preference {
        packet.extract(h.preference);
        transition accept;
    }
    state asker {
        packet.extract(h.counter);
        packet.extract(h.retrieve);
        transition select(h.handed_over.swap) { 1: swap; default: behind_swap; }
    }
    state swap {
        packet.extract(h.swap);
        transition behind_swap;
    }
    state behind_swap {
        transition select(h.handed_over.assigned) { 1: task; default: name; }
    }
    state task {
        packet.extract(h.token);
        packet.extract(h.name);
        packet.extract(h.wait);
        packet.extract(h.assigned);
        transition accept;
    }
    state name {
        packet.extract(h.name);
        packet.extract(h.wait);
        transition accept;
    }
    // A copy is the packet as it came.
    state copy {
        packet.extract(copied);
        m.copy = copied.copy;
        m.copy_level = copied.level;
        m.add = copied.add;
        packet.extract(h.ethernet);
        packet.extract(h.ip);
        packet.extract(h.udp);
        packet.extract(h.mf);
        transition select(h.mf.op) { FIRST_OWN_OP &&& 0xF8: copied_round; default: accept; }
    }
    state copied_round {
        packet.extract(h.round);
        transition accept;
    }
}

control Leave(inout headers_t h, inout metadata_t m, in egress_intrinsic_metadata_t at,
              in egress_intrinsic_metadata_from_parser_t parsed, inout egress_intrinsic_metadata_for_deparser_t ending,
              inout egress_intrinsic_metadata_for_output_port_t port) {
    Behind() behind;
    apply {
        h.handed_over.setInvalid();
        behind.apply(h, m, EGRESS_PASSED);
    }
}

control Deparse_again(packet_out packet, inout headers_t h, in metadata_t m, in egress_intrinsic_metadata_for_deparser_t ending) {
    Checksum() sum;
    apply {
        if (h.ip.isValid()) { SUM_OF_IP; }
        packet.emit(h);
    }
}

Pipeline(Parse(), Pipe(), Deparse(), Parse_again(), Leave(), Deparse_again()) pipe;
Switch(pipe) main;
