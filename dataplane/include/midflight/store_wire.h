/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Packet formats of the store program. Client requests and their replies share one layout, `struct mf_request`. The switch rewrites these
 * first 96 bytes in place; the key and the data for clients and replicas follow. Leader and switch exchange HELLO, HEARTBEAT and
 * END_SESSION; the switch answers each with STATE.
 */
#ifndef MIDFLIGHT_STORE_WIRE_H
#define MIDFLIGHT_STORE_WIRE_H

#include "midflight/wire.h"

#define MF_REPLICAS_MAX 8      /* replicas of a set: one bit each in a bitmap */
#define MF_KGROUP_BITS_MAX 20  /* a set has up to 2^20 key groups */
#define MF_KEY_MAX 1024        /* bytes of a key */
#define MF_NO_SLOT 255         /* `slot`: no replica */

#define MF_STORE_OPERATIONS(X)                                                                     \
    X(READ, 1)                                                                                     \
    X(READ_REPLY, 2)                                                                               \
    X(WRITE, 3)                                                                                    \
    X(WRITE_REPLY, 4)                                                                              \
    X(HELLO, 5)                                                                                    \
    X(HEARTBEAT, 6)                                                                                \
    X(END_SESSION, 7)                                                                              \
    X(STATE, 8)

enum mf_store_operation {
#define X(name, number) MF_OP_##name = number,
    MF_STORE_OPERATIONS(X)
#undef X
    MF_STORE_OP_END
};

/* `status` of READ_REPLY and WRITE_REPLY. */
enum mf_store_status {
    MF_STATUS_DONE = 0,            /* followed by the value, if the command has one */
    MF_STATUS_NOT_FOUND = 1,       /* no such key: possible for GET, EXISTS, DELETE and CAS */
    MF_STATUS_CONFLICT = 2,        /* CAS and CREATE: the key has another value, which follows; UPDATE: its condition does not hold */
    MF_STATUS_NOT_A_NUMBER = 3,    /* INCR and UPDATE: the value or the sum is not a 64-bit number */
    MF_STATUS_COOKIE = 4,          /* from the switch: retry with the cookie in `client` */
    MF_STATUS_INACTIVE = 5,        /* from the switch: no session of this set here; try another switch */
    MF_STATUS_UNKNOWN_SET = 6,     /* from the switch: it does not serve this set */
    MF_STATUS_NOT_LEADER = 7,      /* from a replica: it does not lead the request's session; retry */
    MF_STATUS_REORDERED = 8,       /* from the leader: a later write of the key group came first; retry at once */
    MF_STATUS_BAD_HASH = 9,
    MF_STATUS_UNKNOWN_CLIENT = 10, /* the client id is unknown or expired: the write may or may not have happened */
    MF_STATUS_STALE = 11,          /* the client has started a later write since */
    MF_STATUS_BUSY = 12,           /* the replica's queue is full; try again later */
    MF_STATUS_TOO_LARGE = 13,      /* the result would exceed the maximum value size */
    MF_STATUS_CLIENTS_FULL = 14,   /* no room for another client id */
    MF_STATUS_BAD_REQUEST = 15,    /* unknown command, or wrong arguments for it */
    MF_STATUS_BEHIND = 16,         /* from a follower that lacks LOG_IDX; the switch asks the leader, so clients never see this */
    MF_STATUS_FULL = 17,           /* the store has reached its size limit */
    MF_STATUS_DISK_FULL = 18,      /* no majority of the replicas has free disk space */
    MF_STATUS_PIECE = 19,          /* READ: mf_piece, then a piece of the value */
    MF_STATUS_NOT_STAGED = 20,     /* UPDATE: the staged value is not there, or not whole */
    MF_STATUS_TOO_LONG = 21,       /* a write whose reply would have the value before, which does not fit: it did not run */
    MF_STATUS_END
};

/* `flags` of a request. */
#define MF_FLAG_LEADER_ONLY 1 /* from the switch: the key group is unstable, only the leader may answer */
#define MF_FLAG_EXISTS 2      /* from the client: only asks whether there is a value */
#define MF_FLAG_ANY_REPLICA 4 /* from the switch: it cannot tell whether the replica is up to date; the replica's mode can */
#define MF_FLAG_DIRECT 8      /* READ: set by a client that accepts a reply from an unknown address, left in place by the switch to
                               * request a direct reply. Set in a READ_REPLY that came directly. A READ_REPLY that reaches the switch
                               * with it is a refusal, or its replica could not send it directly */
#define MF_FLAG_OFFERS_DIRECT 16 /* from the switch, in a reply to a client: READs may ask for direct replies */
#define MF_FLAG_SCAN 64       /* from the client: a SCAN. The key is where the page begins: an order, 8 bytes, and the number of keys to
                               * skip there, 2 bytes. A key's order: 4 bytes as in `hash`, and the low half of the XXH3 of the whole key */
#define MF_FLAG_PIECE 128     /* from the client: a READ of a piece of a value; mf_piece_of precedes the key, as a part of it */
#define MF_FLAGS_KEPT (MF_FLAG_EXISTS | MF_FLAG_SCAN | MF_FLAG_PIECE) /* from the client: they reach the replica, and return with its
                                                                       * reply */
#define MF_FLAG_UNSERVED 32 /* from the client: for a while, no switch that answered it has had a session */

/* `command` of mf_write. Log entries use the same numbers. */
enum mf_command {
    MF_COMMAND_OPEN = 1,   /* creates a client id, returned as the value: 8 bytes */
    MF_COMMAND_PUT = 2,    /* value */
    MF_COMMAND_DELETE = 3, /* no arguments */
    MF_COMMAND_CAS = 4,
    MF_COMMAND_INCR = 5,   /* the increment: 8 bytes, two's complement */
    MF_COMMAND_CREATE = 6, /* value */
    MF_COMMAND_UPDATE = 7, /* mf_update, the expected value, the new one */
    MF_COMMAND_STAGE = 8,  /* mf_stage, a part of a value */
    MF_COMMAND_TRANSACT = 9, /* steps: mf_step, its key, mf_update, the expected value, the new one */
};

/* `condition` of mf_update. */
enum mf_condition {
    MF_CONDITION_ALWAYS = 0,
    MF_CONDITION_ABSENT = 1,
    MF_CONDITION_PRESENT = 2,
    MF_CONDITION_EQUALS = 3,   /* the key has the expected value */
    MF_CONDITION_DUE = 4,      /* the key has expired; it exists until a write removes it */
    MF_CONDITION_LASTING = 5,  /* the key exists and does not expire */
    MF_CONDITION_EXPIRING = 6, /* the key exists and expires */
    MF_CONDITION_LATER = 7,    /* the key exists and would expire later than it does */
    MF_CONDITION_EARLIER = 8,  /* the key exists and would expire earlier than it does */
    MF_CONDITION_UNCHANGED = 9, /* the key has this revision: 8 bytes in place of the expected value */
};

/* `change` of mf_update. */
enum mf_change {
    MF_CHANGE_KEEP = 0,
    MF_CHANGE_SET = 1,    /* the last argument is the new value */
    MF_CHANGE_APPEND = 2, /* the last argument is appended; a missing key counts as empty */
    MF_CHANGE_REMOVE = 3,
    MF_CHANGE_ADD = 4,    /* `addend` is added; a missing key counts as 0 */
    MF_CHANGE_SET_STAGED = 5, /* the value staged under the number `addend` is the new value */
    MF_CHANGE_APPEND_STAGED = 6, /* the value staged under the number `addend` is appended */
};

/* `expiry` of mf_update. */
enum mf_expiry {
    MF_EXPIRY_KEEP = 0,
    MF_EXPIRY_NEVER = 1,
    MF_EXPIRY_AFTER = 2, /* `after` from now */
};

#define MF_UPDATE_RETURNS_VALUE 1 /* `flags` of mf_update: the reply has the value before */
#define MF_STEP_REQUIRED 1        /* `flags` of mf_step: unless its condition holds at the beginning, no step runs */

/* READ, WRITE and their replies. A READ is followed by the key; a READ_REPLY by key and value (the key comes first, so that the switch can
 * cut a reply back to a READ); a WRITE by mf_write, key and arguments; a WRITE_REPLY by the value. The switch's own answers end here. */
struct MF_WIRE mf_request {
    struct mf_header header;  /* count: 0. epoch: 0 between client and switch; between switch and replica, the low half of the set's
                               * incarnation, a shared secret against forged replies. sequence: the client's number of this transmission,
                               * repeated by the answer to measure the round trip */
    uint64_t end_to_end_tag;  /* reserved for an end-to-end signature over what no hop changes; 0 until there is a key. (header.tag is
                               * per hop: its cost does not depend on the value's size) */
    uint64_t request;         /* random request id, so that ids cannot be predicted. The answer repeats it, so only a sender that saw the
                               * request can forge one */
    uint64_t sid;             /* SID: term << 32 | number. Set by the switch; 0 before */
    uint64_t seq;             /* SEQ: of this WRITE, or of the last WRITE to the key group. Set by the switch */
    uint64_t index;           /* LOG_IDX. READ: what the replica must have applied. WRITE_REPLY: what closes the key group */
    uint32_t hash;            /* high half of the XXH3 of the key (or of its part in braces); its top bits choose the key group */
    uint16_t set;
    uint16_t key_length;      /* READ, READ_REPLY, WRITE: 0 to MF_KEY_MAX. Else 0 */
    struct mf_address client; /* from the client: its cookie in the first 8 bytes of `ip`, then 0. From the switch on: where the answer
                               * goes, since the switch keeps no record of requests */
    uint8_t replicas;         /* WRITE_REPLY: bitmap of the replicas that have `index` */
    uint8_t slot;             /* destination or source replica: its place in the set; MF_NO_SLOT */
    uint8_t status;           /* replies: enum mf_store_status. Else 0 */
    uint8_t flags;            /* MF_FLAG_... */
};

/* Follows mf_request in a WRITE; key and arguments of the command come next. */
struct MF_WIRE mf_write {
    uint64_t client;          /* client id: log index of its OPEN entry; 0 in OPEN */
    uint64_t number;          /* number of the client's write, increasing; a repeat has the same and is applied once (R3). OPEN: random */
    uint32_t expected_length; /* CAS and UPDATE: bytes of the expected value; else 0 */
    uint8_t command;          /* enum mf_command */
    uint8_t reserved[3];      /* 0 */
};

/* First argument of UPDATE; the expected value and the new one follow. */
struct MF_WIRE mf_update {
    uint64_t after;      /* milliseconds until the key expires */
    int64_t addend;
    uint8_t condition;   /* enum mf_condition */
    uint8_t change;      /* enum mf_change */
    uint8_t expiry;      /* enum mf_expiry */
    uint8_t flags;       /* MF_UPDATE_RETURNS_VALUE */
    uint8_t reserved[4]; /* 0 */
};

/* First part of a WRITE_REPLY to UPDATE, if its status is DONE or CONFLICT; the value before follows if it is wanted. */
struct MF_WIRE mf_updated {
    uint64_t left;       /* milliseconds until the key expires; all bits set: it does not, or does not exist */
    int64_t number;      /* the sum, or the length of the value afterwards */
    uint8_t existed;     /* 1: the key existed before */
    uint8_t reserved[7]; /* 0 */
};

/* A step of TRANSACT; its key, and what an UPDATE has, follow. */
struct MF_WIRE mf_step {
    uint16_t key_length;
    uint16_t expected_length; /* bytes of the expected value */
    uint16_t value_length;    /* bytes of the new value */
    uint8_t flags;            /* MF_STEP_REQUIRED */
    uint8_t reserved;         /* 0 */
};

/* What has become of a step, in a WRITE_REPLY to TRANSACT with DONE; mf_updated and the value before, if it is wanted, follow. */
struct MF_WIRE mf_stepped {
    uint16_t value_length;
    uint8_t status;   /* as of an UPDATE */
    uint8_t reserved; /* 0 */
};

/* First part of a READ_REPLY to SCAN; each key of the page follows: its length in 2 bytes, then the key. */
struct MF_WIRE mf_scanned {
    uint64_t next;       /* order of the keys where the next page begins */
    uint64_t all;        /* keys of the whole store, as the replica knows it */
    uint16_t skip;       /* keys of this order that are behind it */
    uint8_t is_last;     /* 1: this was the last page */
    uint8_t reserved[5]; /* 0 */
};

/* Precedes the key of a READ with MF_FLAG_PIECE, and counts as a part of it. */
struct MF_WIRE mf_piece_of {
    uint64_t revision; /* that of the pieces that the client has; 0: none */
    uint32_t offset;   /* where the piece begins, in bytes */
    uint8_t reserved[4]; /* 0 */
};

/* First part of a READ_REPLY with PIECE; the piece follows. If the key has another revision than the READ asked for, it is the first. */
struct MF_WIRE mf_piece {
    uint64_t revision; /* log index of the entry that last changed the key */
    uint32_t length;   /* of the whole value */
    uint32_t offset;   /* where the piece begins */
};

/* First argument of STAGE; the part follows. */
struct MF_WIRE mf_stage {
    uint64_t staged; /* random number of the value */
    uint32_t length; /* of the whole value */
    uint32_t offset; /* where the part begins */
};

/* replica -> switch: asks for the switch's incarnation and time. */
struct MF_WIRE mf_hello {
    struct mf_header header; /* sequence: the sender's, repeated by the answer */
    uint64_t incarnation;    /* from the last STATE, as proof that the sender received it; 0: none yet */
    uint64_t echo;           /* `now` of that STATE */
    uint16_t set;
    uint8_t slot;            /* sender's place in the set */
    uint8_t reserved[5];     /* 0 */
};

/* A replica in a HEARTBEAT; its position is its slot. */
struct MF_WIRE mf_replica {
    struct mf_address address; /* port 0: no replica has this place, or the leader considers it dead */
    uint8_t weight;            /* share of the stable reads under a load-aware policy; 0: none */
    uint8_t reserved[3];       /* 0 */
    uint64_t matched;          /* its log equals the leader's up to this index */
};

/* leader -> switch: starts or continues the session (ACTIVATE in FLAIR). `count` (1 to MF_REPLICAS_MAX) mf_replica follow. Each HEARTBEAT
 * carries the full state, so the next one repairs a loss. */
struct MF_WIRE mf_heartbeat {
    struct mf_header header;
    uint64_t incarnation; /* a wrong one is refused */
    uint64_t sid;
    uint64_t start;
    uint64_t echo;        /* time in the last STATE received: the lease ends a fixed time after it */
    uint16_t set;
    uint8_t leader;       /* its slot */
    uint8_t kgroup_bits;  /* the set has 2^this key groups; must match the switch's */
    uint8_t is_idle;      /* 1: no write for a while, so reads may go to the leader too */
    uint8_t any_replica;  /* 1: in the set's read mode each replica finds out itself whether it is up to date. So the switch sends a READ
                           * to any replica with a weight, uniformly, even while writes are in flight */
    uint8_t reserved[2];  /* 0 */
};

/* leader -> switch: ends this session and all lower ones (FLAIR: NEUTRALISE). */
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
    struct mf_header header; /* sequence: the request's */
    uint64_t incarnation;    /* random, drawn when the set was added: a change means that the state was lost */
    uint64_t sid;            /* current or last session; 0: none */
    uint64_t ended;          /* highest SID ended by END_SESSION; 0: none */
    uint64_t now;            /* switch time, nanoseconds */
    uint64_t lease;          /* remaining lease of the session, nanoseconds; 0: inactive */
    uint64_t seq;            /* last SEQ of the session */
    uint16_t set;
    uint8_t kgroup_bits;     /* a leader with another number must not use this switch */
    uint8_t unserved;        /* number of requests with MF_FLAG_UNSERVED answered INACTIVE: it grows if clients reach this switch but not
                              * the session's */
    uint32_t lease_us;       /* lease T of the set, microseconds: a leader with another T, which would fence too early, must not use this
                              * switch */
    uint32_t sent[MF_REPLICAS_MAX];     /* READs sent to each replica since the session began, modulo 2^32 */
    uint32_t answered[MF_REPLICAS_MAX]; /* READ_REPLYs from each replica: one that answers none is unreachable */
};

_Static_assert(sizeof(struct mf_request) == 96, "a switch parser reaches this far");

#endif
