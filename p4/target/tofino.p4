// Both Tofinos: what the controls need of a target.

// Parameters from the target for a control of ingress; ports and drops.
#define INTRINSIC in ingress_intrinsic_metadata_t arriving, inout ingress_intrinsic_metadata_for_deparser_t leaving, \
    inout ingress_intrinsic_metadata_for_tm_t manager
#define INTRINSIC_PASSED arriving, leaving, manager
#define INGRESS_PORT arriving.ingress_port
#define OUT_BY(to) manager.ucast_egress_port = (PortId_t)(to); leaving.drop_ctl = 0
// Bypasses egress, which does not know the header at the front.
#define TO_CONTROLLER OUT_BY(CPU_PORT); manager.bypass_egress = 1; h.handed_over.setInvalid()
#define DROP leaving.drop_ctl = 1
#define DROP_AT_LAST ending.drop_ctl = 1
// The compiler assigns the stages itself.
#define AT_STAGE(n)

#define CHECK_SUM_OF_IP sum.add(h.ip); m.wrong_sum = sum.verify();
#define SUM_OF_IP h.ip.checksum = sum.update({ \
    h.ip.version_length, h.ip.service, h.ip.length, h.ip.id, h.ip.fragment, h.ip.hops, \
    h.ip.protocol, h.ip.from, h.ip.to })

// A copy of the packet as it came, with some of its metadata.
// The controller sends mirror session 1 to the recirculation port.
#define COPY_TYPE 1
#define COPY_SESSION 1
#define COPIED 1
#define COPY_METADATA MirrorId_t session; bit<8> is_copy;
#define SEND_COPY leaving.mirror_type = COPY_TYPE; m.session = COPY_SESSION; m.is_copy = 0x80
#define IS_COPY (m.copy != 0)

// A register: `number` is the type of a cell's number. ACCESS is one packet's operation on one cell: its statements
// read and write the cell as `v` and set the packet's `rv`; ACCESS_IT sets nothing. DO and GET perform it.
#define REGISTER(name, width, number, cells) Register<bit<width>, number>(cells) name;
#define ACCESS(name, register, width, index, result, ...) \
    RegisterAction<bit<width>, index, bit<result>>(register) name = { \
        void apply(inout bit<width> v, out bit<result> rv) { __VA_ARGS__ } };
#define ACCESS_IT(name, register, width, index, ...) \
    RegisterAction<bit<width>, index, bit<width>>(register) name = { void apply(inout bit<width> v) { __VA_ARGS__ } };
#define DO(name, i) name.execute(i)
#define GET(to, name, i) to = name.execute(i)

// A register of two words in a cell: `v.low` and `v.high`.
struct pair_t { bit<32> low; bit<32> high; }
#define PAIR_REGISTER(name, number, cells) Register<pair_t, number>(cells) name;
#define PAIR_ACCESS(name, register, index, result, ...) \
    RegisterAction<pair_t, index, bit<result>>(register) name = { \
        void apply(inout pair_t v, out bit<result> rv) { __VA_ARGS__ } };
#define PAIR_ACCESS_IT(name, register, index, ...) \
    RegisterAction<pair_t, index, bit<8>>(register) name = { void apply(inout pair_t v) { __VA_ARGS__ } };

// Serial numbers: their order is the sign of their difference, so the stateful ALU needs them as signed.
struct serial_pair_t { int<32> low; int<32> high; }
#define SERIAL(x) ((int<32>)(x))
#define PLAIN(x) ((bit<32>)(x))
#define BEFORE(a, b) ((a) - (b) < 0)
#define SERIAL_REGISTER(name, number, cells) Register<int<32>, number>(cells) name;
#define SERIAL_ACCESS(name, register, index, result, ...) \
    RegisterAction<int<32>, index, bit<result>>(register) name = { \
        void apply(inout int<32> v, out bit<result> rv) { __VA_ARGS__ } };
#define SERIAL_PAIR_REGISTER(name, number, cells) Register<serial_pair_t, number>(cells) name;
#define SERIAL_PAIR_ACCESS(name, register, index, result, ...) \
    RegisterAction<serial_pair_t, index, bit<result>>(register) name = { \
        void apply(inout serial_pair_t v, out bit<result> rv) { __VA_ARGS__ } };
// Which of two tests held.
#define PREDICATE(first, second) this.predicate(first, second)

// Egress: headers and the metadata from ingress.
#define EGRESS inout egress_intrinsic_metadata_for_deparser_t ending
#define EGRESS_PASSED ending
