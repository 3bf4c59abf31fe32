// What the programs of tasks read and write of a packet: the wire of docs/wire.md, version 3, and the headers with which a packet goes round
// through the switch. Fields that a table must take apart are declared in parts.

// The UDP port of the switch: -DMF_UDP_PORT=… for another one.
#ifndef MF_UDP_PORT
#define MF_UDP_PORT 7700
#endif
const bit<16> MF_PORT = MF_UDP_PORT;
const bit<16> MF_MAGIC = 0x4D46;
const bit<8> MF_VERSION = 3;

// Operations of the wire, and two that only the switch itself sends, through its recirculation port.
enum bit<8> Op {
    SUBMIT = 1, SUBMIT_ACK = 2, REGISTER = 3, RESET = 5, RETRIEVE = 6, ASSIGN = 7, KEEPALIVE = 8, RELEASE = 9, PROBE = 13, CANCEL = 15,
    NO_OP = 17,
    // A search: it carries a task that needs a place, and an executor that needs a task.
    SWAP = 200,
    // The rest of a SUBMIT.
    REST = 201
}

header ethernet_h { bit<48> to; bit<48> from; bit<16> type; }
header ipv4_h {
    bit<8> version_length; bit<8> service; bit<16> length; bit<16> id; bit<16> fragment; bit<8> hops; bit<8> protocol; bit<16> checksum;
    bit<32> from; bit<32> to;
}
header udp_h { bit<8> from_high; bit<8> from_low; bit<16> to; bit<16> length; bit<16> checksum; }

// In front of a packet to or from the switch's own CPU: the port that it came by, or that it goes to.
header cpu_h { bit<16> port; }

header mf_h {
    bit<16> magic; bit<8> version; bit<8> op; bit<8> count; bit<8> key; bit<16> reserved; bit<32> epoch; bit<32> sequence; bit<64> tag;
}
// Behind `mf_h` of a packet that goes round, and only there.
header round_h {
    bit<16> came_from;
    // The level of a search, or of the rest of a RETRIEVE.
    bit<8> level;
    // Records of a SUBMIT that are left.
    bit<8> left;
    // The first record's bit in the bitmaps of SUBMIT_ACK.
    bit<32> bitmap;
}
// SUBMIT and SUBMIT_ACK.
header client_h { bit<64> client; }
// SUBMIT_ACK. On its way round, `credit_of`, `index`, `prefers` and `credit` are in the place of reserved bytes and `room`.
header ack_h { bit<32> taken; bit<32> refused; bit<8> why; bit<8> credit_of; bit<8> index; bit<8> prefers; bit<32> credit; }
header submit_h { bit<64> cookie; bit<32> token_high; bit<32> token; bit<32> uid; bit<32> jid; }
header task_h {
    bit<32> tid; bit<32> function; bit<8> level; bit<8> resources; bit<8> argument_length; bit<8> attempt;
    bit<32> argument; bit<32> argument_2; bit<32> argument_3; bit<32> argument_4;
}
header preference_h { bit<32> place; bit<32> patience; }
// RETRIEVE and RESET.
header counter_h { bit<32> high; bit<32> low; }
header retrieve_h { bit<8> resources; bit<8> ahead; bit<48> reserved; }
// SWAP: with which entry the task is exchanged next.
header swap_h { bit<32> at; }
// ASSIGN is token, name, wait, assigned; NO_OP is name, wait; RESET is counter, and if its epoch is the switch's, name and wait.
header token_h { bit<32> high; bit<32> low; }
header name_h { bit<32> slot; bit<32> generation; }
header wait_h { bit<32> sequence; }
header assigned_h {
    bit<32> waited; bit<32> tid; bit<32> function; bit<8> level; bit<8> resources; bit<8> argument_length; bit<8> attempt;
    bit<32> argument; bit<32> argument_2; bit<32> argument_3; bit<32> argument_4;
    bit<32> uid; bit<32> jid; bit<32> ip_1; bit<32> ip_2; bit<32> ip_3; bit<32> client_ip; bit<8> port_high; bit<8> port_low; bit<16> reserved;
    bit<32> submission; bit<8> index; bit<24> reserved_2;
}

// In the order in which the deparser writes them.
struct headers_t {
    cpu_h cpu; ethernet_h ethernet; ipv4_h ip; udp_h udp; mf_h mf; round_h round; client_h client; ack_h ack; submit_h submit; task_h task;
    preference_h preference; counter_h counter; retrieve_h retrieve; swap_h swap; token_h token; name_h name; wait_h wait; assigned_h assigned;
}

// What the parser found.
enum bit<8> Found {
    // Not for the queue: to be forwarded.
    OTHER = 0,
    MIDFLIGHT = 1,
    // Another version of the format: the controller answers.
    VERSION = 2,
    // For the queue's port, and nothing that it knows.
    MALFORMED = 3
}

// What a packet is doing.
enum bit<8> Role {
    NONE = 0,
    // A task is to be queued; the limit is the lagging copy of the credit.
    SUBMIT = 1,
    // A task is to be queued; the limit is a value of the credit that the packet has read, or a newer one.
    REST = 2,
    // A task that the switch cannot queue, whatever room there is.
    REFUSE = 3,
    // An executor wants a task; behind the counts: there is none.
    RETRIEVE = 4,
    // A search within the queue.
    SWAP = 5,
    // A task was taken in, and is written.
    STORE = 6,
    // A search is at the tail, where its task is written.
    PLACE = 7,
    // An executor takes the head.
    TAKE = 8,
    // A search during which the queue ran empty.
    AGAIN = 13,
    // A RETRIEVE of a slot that is void.
    RESET = 14
}

struct metadata_t {
    bit<8> found;
    bit<8> role;
    // From 0.
    bit<8> lvl;
    // `accepted` may not go beyond this.
    bit<32> limit;
    // `accepted` as it was.
    bit<32> number;
    // `add_ptr` as a search found it.
    bit<32> add;
    // The pointer to the entry that this packet is about.
    bit<32> at;
    // Which of two levels gave a task, one-hot: 2 the first, 4 the second, 8 the first of two; 1: none; 0: nobody has looked.
    bit<8> found_1_2;
    bit<8> found_3_4;
    // The resources that the task needs and the executor does not have.
    bit<8> missing;
    bit<8> level;
    bit<8> left;
    bit<16> came_from;
    // Its lengths agree with its count.
    bit<1> formed;
    // It has gone round: it was checked before.
    bit<1> checked;
    // It is an answer.
    bit<1> answer;
    // Its first record is done with.
    bit<1> popped;
    // Of a RETRIEVE: the epoch is the present one, the slot is the sender's, the counter is later than its last.
    bit<1> present;
    bit<1> known;
    // One-hot, as `found_1_2`: 2 is yes.
    bit<8> fresh;
}
