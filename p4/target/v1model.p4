// v1model (BMv2's simple_switch): what the controls need of a target.
#include <v1model.p4>

// The recirculation port, and the port of the switch's own CPU.
const bit<9> RECIRCULATION_PORT = 68;
const bit<9> CPU_PORT = 192;
// The other end of a link from that port: -DRETURN_PORT=… sets it.
#ifndef RETURN_PORT
#define RETURN_PORT RECIRCULATION_PORT
#endif

// Parameters from the target for a control of ingress and of egress; ports and drops.
#define INTRINSIC inout standard_metadata_t standard
#define INTRINSIC_PASSED standard
#define EGRESS inout standard_metadata_t standard
#define EGRESS_PASSED standard
#define INGRESS_PORT standard.ingress_port
#define OUT_BY(to) standard.egress_spec = (bit<9>)to
#define DROP mark_to_drop(standard)
#define DROP_AT_LAST mark_to_drop(standard)
#define TO_CONTROLLER OUT_BY(CPU_PORT)
// The stage of a table on Tofino; this target has none.
#define AT_STAGE(n)
// A separate control verifies it.
#define CHECK_SUM_OF_IP

// A copy of the packet as it came, with some of its metadata.
// The controller sends mirror session 1 to the recirculation port.
#define COPIED 1
#define COPY_METADATA
#define SEND_COPY clone_preserving_field_list(CloneType.I2E, 1, COPIED)
#define IS_COPY (standard.instance_type == 1)

// A register: `number` is the type of a cell's number. ACCESS is one packet's operation on one cell: its statements
// read and write the cell as `v` and set the packet's `rv`; ACCESS_IT sets nothing. DO and GET perform it.
#define REGISTER(name, width, number, cells) register<bit<width>>(cells) name;
#define ACCESS(name, register, width, index, result, ...) \
    action name(in bit<32> i, out bit<result> given) { \
        bit<width> v; bit<result> rv = 0; \
        register.read(v, i); __VA_ARGS__ register.write(i, v); given = rv; }
#define ACCESS_IT(name, register, width, index, ...) \
    action name(in bit<32> i) { bit<width> v; register.read(v, i); __VA_ARGS__ register.write(i, v); }
#define DO(name, i) name((bit<32>)(i))
#define GET(to, name, i) name((bit<32>)(i), to)

// A register with two words in a cell: `v.low` and `v.high`.
// Two registers here: ingress is one thread, so no packet sees one without the other.
struct pair_t { bit<32> low; bit<32> high; }
#define PAIR_REGISTER(name, number, cells) \
    register<bit<32>>(cells) name##_low; register<bit<32>>(cells) name##_high;
#define PAIR_READ(register) register##_low.read(v.low, i); register##_high.read(v.high, i);
#define PAIR_WRITE(register) register##_low.write(i, v.low); register##_high.write(i, v.high);
#define PAIR_ACCESS(name, register, index, result, ...) \
    action name(in bit<32> i, out bit<result> given) { \
        pair_t v; bit<result> rv = 0; \
        PAIR_READ(register) __VA_ARGS__ PAIR_WRITE(register) given = rv; }
#define PAIR_ACCESS_IT(name, register, index, ...) \
    action name(in bit<32> i) { pair_t v; PAIR_READ(register) __VA_ARGS__ PAIR_WRITE(register) }

// Serial numbers: their order is the sign of their difference.
#define SERIAL(x) (x)
#define PLAIN(x) (x)
#define BEFORE(a, b) ((int<32>)((a) - (b)) < 0)
#define SERIAL_REGISTER(name, number, cells) REGISTER(name, 32, number, cells)
#define SERIAL_ACCESS(name, register, index, result, ...) ACCESS(name, register, 32, index, result, __VA_ARGS__)
#define SERIAL_PAIR_REGISTER(name, number, cells) PAIR_REGISTER(name, number, cells)
#define SERIAL_PAIR_ACCESS(name, register, index, result, ...) PAIR_ACCESS(name, register, index, result, __VA_ARGS__)
// PREDICATE: which of two tests held, one-hot (1 none, 2 the first, 4 the second, 8 both).
// ONE_HOT: a match for some of these. Also matches 0: no access.
#define ONE_HOT(bits) 0 &&& (0xF ^ (bits))
#define PREDICATE_BITS 8
#define PREDICATE(first, second) ((first) ? ((second) ? 8w8 : 8w2) : ((second) ? 8w4 : 8w1))
