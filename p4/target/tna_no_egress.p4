// Egress of a program that has none: packets leave unchanged.
#define INTO_EGRESS
#define HAND_OVER
#define COPYING
#define COPY
#include "tna_ingress.p4"

struct no_headers_t { }
struct no_metadata_t { }
parser Parse_again(packet_in packet, out no_headers_t h, out no_metadata_t m, out egress_intrinsic_metadata_t at) {
    state start { packet.extract(at); transition accept; }
}
control Leave(inout no_headers_t h, inout no_metadata_t m, in egress_intrinsic_metadata_t at,
              in egress_intrinsic_metadata_from_parser_t parsed, inout egress_intrinsic_metadata_for_deparser_t ending,
              inout egress_intrinsic_metadata_for_output_port_t port) { apply { } }
control Deparse_again(packet_out packet, inout no_headers_t h, in no_metadata_t m,
                      in egress_intrinsic_metadata_for_deparser_t ending) { apply { packet.emit(h); } }

Pipeline(Parse(), Pipe(), Deparse(), Parse_again(), Leave(), Deparse_again()) pipe;
Switch(pipe) main;
