// Egress of a program that continues there. It starts without metadata and parses the packet again:
// a header at the front has the values from ingress, and those of a copy.
header copied_h { bit<8> kind; bit<8> copy; bit<8> level; bit<32> add; }

#define INTO_EGRESS manager.bypass_egress = 0; h.handed_over.setValid();
#define HAND_OVER Hand_over.apply(h, m);
#define COPYING Mirror() mirror;
// A copy has the first bit set.
#define COPY \
    if (leaving.mirror_type == COPY_TYPE) { \
        mirror.emit<copied_h>(m.session, { m.is_copy, m.copy, m.copy_level, m.add }); }

// Bits of `follow`.
const bit<8> ROUND = 1;
const bit<8> SEARCH = 2;
const bit<8> TASK = 4;

control Hand_over(inout headers_t h, inout metadata_t m) {
    action with(bit<8> headers) {
        h.handed_over.follow = headers;
        h.handed_over.role = m.role; h.handed_over.level = m.level; h.handed_over.at = m.at;
        h.handed_over.answer = m.answer; h.handed_over.present = m.present; h.handed_over.popped = m.popped;
    }
    table hand_over {
        key = { h.round.isValid(): exact; h.swap.isValid(): exact; h.assigned.isValid(): exact; }
        actions = { with; @defaultonly NoAction; }
        const entries = {
            (false, false, false): with(0);
            (false, false, true): with(TASK);
            (true, false, false): with(ROUND);
            (true, false, true): with(ROUND | TASK);
            (true, true, true): with(ROUND | SEARCH | TASK);
            (false, true, true): with(SEARCH | TASK);
        }
        const default_action = NoAction;
    }
    apply { hand_over.apply(); }
}
#include "tna_ingress.p4"

@egress_intrinsic_metadata_opt
@pa_auto_init_metadata
parser Parse_again(packet_in packet, out headers_t h, out metadata_t m, out egress_intrinsic_metadata_t at) {
    copied_h copied;
    state start {
        packet.extract(at);
        transition select(packet.lookahead<bit<1>>()) { 0: handed_over; 1: copy; }
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
        transition select(h.handed_over.follow) { ROUND &&& ROUND: round; default: counter; }
    }
    state round {
        packet.extract(h.round);
        transition select(h.mf.op) { Op.SUBMIT_ACK: submit; Op.REST: submit; default: asked; }
    }
    state submit {
        packet.extract(h.client);
        packet.extract(h.ack);
        packet.extract(h.submit);
        packet.extract(h.task);
        transition accept;
    }
    state counter {
        packet.extract(h.counter);
        transition asked;
    }
    state asked {
        packet.extract(h.retrieve);
        transition select(h.handed_over.follow) { SEARCH &&& SEARCH: search; TASK &&& TASK: task; default: name; }
    }
    state search {
        packet.extract(h.swap);
        transition task;
    }
    state task {
        packet.extract(h.token);
        packet.extract(h.name);
        packet.extract(h.wait);
        packet.extract(h.assigned);
        packet.extract(h.origin);
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

control Deparse_again(packet_out packet, inout headers_t h, in metadata_t m,
                      in egress_intrinsic_metadata_for_deparser_t ending) {
    Checksum() sum;
    apply {
        if (h.ip.isValid()) { SUM_OF_IP; }
        packet.emit(h);
    }
}

Pipeline(Parse(), Pipe(), Deparse(), Parse_again(), Leave(), Deparse_again()) pipe;
Switch(pipe) main;
