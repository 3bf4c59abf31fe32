// Headers of the tasks program: the format of docs/wire.md, version 4, and the headers for recirculation.
// A field that a table needs in parts is declared in parts.

// The UDP port of the switch: -DMF_UDP_PORT=… sets another one.
#ifndef MF_UDP_PORT
#define MF_UDP_PORT 7700
#endif
const bit<16> MF_PORT = MF_UDP_PORT;
const bit<16> MF_MAGIC = 0x4D46;
const bit<8> MF_VERSION = 4;

const bit<8> FIRST_OWN_OP = 200;
// Operations of the wire; 200 to 207 are for recirculated packets, which only the switch itself sends.
enum bit<8> Op {
    SUBMIT = 1, SUBMIT_ACK = 2, REGISTER = 3, RESET = 5, RETRIEVE = 6, ASSIGN = 7, KEEPALIVE = 8, RELEASE = 9,
    PROBE = 13, CANCEL = 15, NO_OP = 17,
    // A search for an executor that wants a task. It carries a task that this executor may not run, and exchanges it
    // with the next entry's until it carries one that the executor may run.
    SWAP = 200,
    // The rest of a SUBMIT: the tasks that earlier passes have not handled.
    REST = 201,
    // Published program only: a task that a search carried to the end of the queue, to be queued again;
    // an executor whose search found nothing; the right value of a pointer.
    BACK = 202, OWE_NO_OP = 203, REPAIR_ADD = 204, REPAIR_RETRIEVE = 205
}

header ethernet_h { bit<48> to; bit<48> from; bit<16> type; }
header ipv4_h {
    bit<8> version_length; bit<8> service; bit<16> length; bit<16> id; bit<16> fragment; bit<8> hops; bit<8> protocol;
    bit<16> checksum; bit<32> from; bit<32> to;
}
header udp_h { bit<8> from_high; bit<8> from_low; bit<16> to; bit<16> length; bit<16> checksum; }

// Before a packet to or from the switch's own CPU: its ingress or egress port.
header cpu_h { bit<16> port; }

// Starts all packets of Midflight. `count`: number of records, tasks or slots.
header mf_h {
    bit<16> magic; bit<8> version; bit<8> op; bit<8> count; bit<8> key; bit<16> reserved; bit<32> epoch;
    bit<32> sequence; bit<64> tag;
}
// After `mf_h` of a recirculated packet only.
header round_h {
    // The port of its request, by which the answer leaves.
    bit<16> came_from;
    // The level of a search, of the rest of a RETRIEVE, of a pointer.
    bit<8> level;
    // Tasks of a SUBMIT that are left.
    bit<8> left;
    // Of a SUBMIT: the bit of its first task in the bitmaps of SUBMIT_ACK. Of a pointer: its new value.
    // Of a search of the published program: `retrieve_ptr` when `at` was set.
    bit<32> word;
}
// SUBMIT and SUBMIT_ACK.
header client_h { bit<64> client; }
// SUBMIT_ACK: the tasks taken and refused, a bit for each, and why. During recirculation, `credit_of`, `index`,
// `prefers` and `credit` are in the place of three reserved bytes and of `room`.
header ack_h {
    bit<32> taken; bit<32> refused; bit<8> why; bit<8> credit_of; bit<8> index; bit<8> prefers; bit<32> credit;
}
// Only in a SUBMIT from outside.
header cookie_h { bit<64> cookie; }
// A SUBMIT's tasks share a token (64 bits), a user and a job (`uid`, `jid`).
header submit_h { bit<32> token_high; bit<32> token; bit<32> uid; bit<32> jid; }
// One task. Later ones are not parsed.
header task_h {
    bit<32> tid; bit<32> function; bit<8> level; bit<8> resources; bit<8> argument_length; bit<8> attempt;
    bit<32> argument; bit<32> argument_2; bit<32> argument_3; bit<32> argument_4;
}
header preference_h { bit<32> place; bit<32> patience; }
// RETRIEVE and RESET.
header counter_h { bit<32> high; bit<32> low; }
header retrieve_h { bit<8> resources; bit<8> ahead; bit<48> reserved; }
// SWAP: the entry whose task is exchanged next.
header swap_h { bit<32> at; }
// ASSIGN is the next eight headers in this order. A search has those that an entry fills; NO_OP has name and wait;
// RESET has the counter, and for a packet of the current epoch name and wait.
header token_high_h { bit<32> word; }
header token_h { bit<32> low; }
header name_h { bit<32> slot; bit<32> generation; }
header wait_h { bit<32> sequence; }
header waited_h { bit<32> time; }
header assigned_h {
    bit<32> tid; bit<32> function; bit<8> level; bit<8> resources; bit<8> argument_length; bit<8> attempt;
    bit<32> argument; bit<32> argument_2; bit<32> argument_3; bit<32> argument_4;
}
header user_h { bit<32> uid; bit<32> jid; bit<32> ip_1; bit<32> ip_2; bit<32> ip_3; }
header origin_h {
    bit<32> client_ip; bit<8> port_high; bit<8> port_low; bit<16> reserved; bit<32> submission; bit<8> index;
    bit<24> reserved_2;
}

// Passed from ingress to egress on targets where egress starts with nothing else: which headers follow
// (the bits of ROUND, SEARCH and TASK; the highest bit marks a copy), and some metadata.
header handed_over_h {
    bit<8> follow; bit<1> answer; bit<1> present; bit<1> popped; bit<5> reserved;
    bit<8> role; bit<8> level; bit<32> at;
}

// In the deparser's order.
struct headers_t {
    handed_over_h handed_over; cpu_h cpu; ethernet_h ethernet; ipv4_h ip; udp_h udp; mf_h mf; round_h round;
    client_h client; ack_h ack; cookie_h cookie; submit_h submit; task_h task; preference_h preference;
    counter_h counter; retrieve_h retrieve; swap_h swap;
    token_high_h token_high; token_h token; name_h name; wait_h wait; waited_h waited; assigned_h assigned; user_h user;
    origin_h origin;
}

// Result of the parser.
enum bit<8> Found {
    // Not for the queue: forwarded.
    OTHER = 0,
    MIDFLIGHT = 1,
    // Another version of the format: the controller answers.
    VERSION = 2,
    // For the queue's port, but unknown.
    MALFORMED = 3
}
