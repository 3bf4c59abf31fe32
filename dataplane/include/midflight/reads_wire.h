/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The packet formats of the reads program. Requests of clients and their answers have one layout, `struct mf_request`, and pass
 * the switch, which rewrites these first 96 bytes in place; behind them come the key and what only clients and replicas read.
 * Leader and switch speak by HELLO, HEARTBEAT, END_SESSION, and its answer to each of them, STATE.
 */
#ifndef MIDFLIGHT_READS_WIRE_H
#define MIDFLIGHT_READS_WIRE_H

#include "midflight/wire.h"

#define MF_REPLICAS_MAX 8      /* replicas of a set: one bit each in a bitmap */
#define MF_KGROUP_BITS_MAX 20  /* a set has up to 2^20 key groups */
#define MF_KEY_MAX 1024        /* bytes of a key */
#define MF_NO_SLOT 255         /* `slot`: no replica */

#define MF_READS_OPERATIONS(X)                                                                     \
    X(READ, 1)                                                                                     \
    X(READ_REPLY, 2)                                                                               \
    X(WRITE, 3)                                                                                    \
    X(WRITE_REPLY, 4)                                                                              \
    X(HELLO, 5)                                                                                    \
    X(HEARTBEAT, 6)                                                                                \
    X(END_SESSION, 7)                                                                              \
    X(STATE, 8)

enum mf_reads_operation {
#define X(name, number) MF_OP_##name = number,
    MF_READS_OPERATIONS(X)
#undef X
    MF_READS_OP_END
};

/* What became of a request: `status` of READ_REPLY and WRITE_REPLY. */
enum mf_reads_status {
    MF_STATUS_DONE = 0,            /* the value follows, if the command has one */
    MF_STATUS_NOT_FOUND = 1,       /* there is no such key: an outcome of GET, EXISTS, DELETE and CAS */
    MF_STATUS_CONFLICT = 2,        /* CAS: the key has another value, which follows */
    MF_STATUS_NOT_A_NUMBER = 3,    /* INCR: the value is no number of 64 bits, or the sum is none */
    MF_STATUS_COOKIE = 4,          /* of the switch: repeat the request with this cookie, which `client` holds */
    MF_STATUS_INACTIVE = 5,        /* of the switch: it has no session of this set; try another switch */
    MF_STATUS_UNKNOWN_SET = 6,     /* of the switch: it serves no such set */
    MF_STATUS_NOT_LEADER = 7,      /* of a replica: the request is of a session that it does not lead; repeat it */
    MF_STATUS_REORDERED = 8,       /* of the leader: a later write of the key group came first; repeat it at once */
    MF_STATUS_BAD_HASH = 9,        /* `hash` is not the key's */
    MF_STATUS_UNKNOWN_CLIENT = 10, /* the client's id is not, or not any more: whether the write took place is unknown */
    MF_STATUS_STALE = 11,          /* the client has begun a later write since */
    MF_STATUS_BUSY = 12,           /* a queue of the replica is full; try again later */
    MF_STATUS_TOO_LARGE = 13,      /* the result would exceed what a value may have */
    MF_STATUS_CLIENTS_FULL = 14,   /* no room for another client id */
    MF_STATUS_BAD_REQUEST = 15,    /* a command that does not exist, or with arguments that it does not take */
    MF_STATUS_BEHIND = 16,         /* of a follower: it does not have LOG_IDX; the switch asks the leader, no client sees this */
    MF_STATUS_FULL = 17,           /* the store has as many bytes as it may */
    MF_STATUS_DISK_FULL = 18,      /* no majority of the replicas has room on its disk */
    MF_STATUS_END
};

/* `flags` of a request. */
#define MF_FLAG_LEADER_ONLY 1 /* set by the switch: the key group is unstable, only the leader may answer */
#define MF_FLAG_EXISTS 2      /* set by the client: the value is not wanted, only whether there is one */
#define MF_FLAG_ANY_REPLICA 4 /* set by the switch: it does not know whether the replica is up to date; the replica's mode does */
#define MF_FLAG_DIRECT 8      /* of a READ, set by the client: the reply may come from an address that I do not know; left by the
                               * switch: send it to the client. A READ_REPLY that came directly has it. One that comes to the switch
                               * with it is a refusal, or of a replica that could not send it directly */
#define MF_FLAG_OFFERS_DIRECT 16 /* of a reply to a client, set by the switch: READs may ask for direct replies */
#define MF_FLAG_UNSERVED 32 /* of a request, set by the client: for a while, each switch that answers it has had no session */

/* What a WRITE does: `command` of mf_write. The numbers are also those of the entries in the log. */
enum mf_command {
    MF_COMMAND_OPEN = 1,   /* a new client id, which comes as the value of the answer: 8 bytes */
    MF_COMMAND_PUT = 2,    /* value */
    MF_COMMAND_DELETE = 3, /* nothing */
    MF_COMMAND_CAS = 4,    /* expected value, then new value */
    MF_COMMAND_INCR = 5,   /* what to add: 8 bytes, two's complement */
};

/*
 * READ, WRITE and their replies. A READ's key follows; a READ_REPLY's key and value (the key comes first, so that the switch can
 * make a READ of it again by cutting it off); a WRITE's mf_write, key and arguments; a WRITE_REPLY's value. An answer of the switch
 * itself ends here.
 */
struct MF_WIRE mf_request {
    struct mf_header header;  /* count: 0. epoch: 0 between client and switch; between switch and replica the low half of the set's
                               * incarnation, a secret of those: others cannot forge a reply. sequence: the client counts the
                               * times that it sent this request, and an answer repeats the number: so a round trip can be measured */
    uint64_t end_to_end_tag;  /* the place of a signature by client or replica over what no hop changes; 0 until there is a key.
                               * (header.tag is for the hop: its cost does not grow with the value) */
    uint64_t request;         /* which request of this client: a random number, so that who sees one knows none of the others. An
                               * answer repeats it: who does not see the request cannot forge one */
    uint64_t sid;             /* SID: term << 32 | number. Set by the switch; 0 before */
    uint64_t seq;             /* SEQ: of this WRITE, or of the last WRITE to the key group. Set by the switch */
    uint64_t index;           /* LOG_IDX. READ: what the replica must have applied. WRITE_REPLY: what closes the key group */
    uint32_t hash;            /* the high half of the key's XXH3 (or of its part in braces); its top bits choose the key group */
    uint16_t set;             /* which replica set */
    uint16_t key_length;      /* READ, READ_REPLY, WRITE: 0 to MF_KEY_MAX. Else 0 */
    struct mf_address client; /* from the client: its cookie in the first 8 bytes of `ip`, the rest 0. From the switch on: where
                               * the answer goes. The switch itself keeps no record of requests */
    uint8_t replicas;         /* WRITE_REPLY: bitmap of the replicas that have `index` */
    uint8_t slot;             /* the replica that this is for, or from: its place in the set; MF_NO_SLOT */
    uint8_t status;           /* replies: enum mf_reads_status. Else 0 */
    uint8_t flags;            /* MF_FLAG_... */
};

/* What follows mf_request in a WRITE; then the key, then the arguments of the command. */
struct MF_WIRE mf_write {
    uint64_t client;          /* the client's id: the log index of the entry that opened it; 0 in OPEN */
    uint64_t number;          /* counts the client's writes up: a repeat has the same, and is applied once (R3). OPEN: random */
    uint32_t expected_length; /* CAS: bytes of the expected value; else 0 */
    uint8_t command;          /* enum mf_command */
    uint8_t reserved[3];      /* 0 */
};

/* replica -> switch: which incarnation is it, and what is the time there? */
struct MF_WIRE mf_hello {
    struct mf_header header; /* sequence: the sender's; the answer repeats it */
    uint64_t incarnation;    /* of the last STATE that came from there, which proves who asks; 0: none has come */
    uint64_t echo;           /* its time */
    uint16_t set;
    uint8_t slot;            /* the sender's place in the set */
    uint8_t reserved[5];     /* 0 */
};

/* A replica in a HEARTBEAT, at its place (slot). */
struct MF_WIRE mf_replica {
    struct mf_address address; /* port 0: no replica has this place, or the leader does not take it for alive */
    uint8_t weight;            /* its share of the reads of stable key groups, where the policy is load-aware; 0: none */
    uint8_t reserved[3];       /* 0 */
    uint64_t matched;          /* its log is the leader's up to this index */
};

/* leader -> switch: the session begins, or goes on. `count` (1 to MF_REPLICAS_MAX) mf_replica follow. All that the switch needs is
 * in each HEARTBEAT, so a lost one is healed by the next. Also called ACTIVATE. */
struct MF_WIRE mf_heartbeat {
    struct mf_header header;
    uint64_t incarnation; /* another one is refused */
    uint64_t sid;
    uint64_t start;       /* s: the index of the session's entry */
    uint64_t echo;        /* the time of the last STATE that came: the lease ends a fixed time after it */
    uint16_t set;
    uint8_t leader;       /* its slot */
    uint8_t kgroup_bits;  /* the set has 2^this key groups; another number than the switch's is refused */
    uint8_t is_idle;      /* 1: no write has been under way for a while, so reads may go to the leader too */
    uint8_t any_replica;  /* 1: the set's read mode lets every replica find out itself whether it is up to date. So a READ goes to any
                           * that has a weight, each with the same chance, whatever is under way */
    uint8_t reserved[2];  /* 0 */
};

/* leader -> switch: this session ends, and all lower ones (FLAIR calls it NEUTRALISE). */
struct MF_WIRE mf_end_session {
    struct mf_header header;
    uint64_t incarnation;
    uint64_t sid;
    uint16_t set;
    uint8_t slot; /* the sender's */
    uint8_t reserved[5];
};

/* switch -> replica: the answer to HELLO, HEARTBEAT and END_SESSION. */
struct MF_WIRE mf_state {
    struct mf_header header; /* sequence: that of the question */
    uint64_t incarnation;    /* random, drawn when the set was added to this switch: another one means that all state was lost */
    uint64_t sid;            /* the present or last session; 0: none */
    uint64_t ended;          /* the highest SID that has ended here by END_SESSION; 0: none */
    uint64_t now;            /* the time here, nanoseconds */
    uint64_t lease;          /* nanoseconds that are left of the session's lease; 0: the switch is inactive */
    uint64_t seq;            /* the last SEQ of the session */
    uint16_t set;
    uint8_t kgroup_bits;     /* a leader with another number does not work with this switch */
    uint8_t unserved;        /* counts the requests with MF_FLAG_UNSERVED that had INACTIVE as their answer: where it grows, clients
                              * reach this switch and not the session's */
    uint32_t lease_us;       /* T of the set here, microseconds: nor does a leader with another T, who would fence too early */
    uint32_t sent[MF_REPLICAS_MAX];     /* READs sent to each replica since the session began, modulo 2^32 */
    uint32_t answered[MF_REPLICAS_MAX]; /* READ_REPLYs that came from it: who answers none is not reached */
};

_Static_assert(sizeof(struct mf_request) == 96, "what a switch parser reaches (rule 9 of the house)");

#endif
