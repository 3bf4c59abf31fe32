/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The packet formats of the tasks program: a fixed part, then `count` records of one size. */
#ifndef MIDFLIGHT_TASKS_WIRE_H
#define MIDFLIGHT_TASKS_WIRE_H

#include "midflight/wire.h"

/* How many records a packet may carry. */
#define MF_SUBMIT_MAX 32    /* tasks: one bit each in the bitmaps of SUBMIT_ACK */
#define MF_SLOTS_MAX 13     /* slots in RETRIEVE, ASSIGN, NO_OP, RELEASE: a full RETRIEVE is answered by one ASSIGN */
#define MF_REGISTER_MAX 32  /* slots in REGISTER, REGISTERED, RESET, KEEPALIVE */
#define MF_CANCEL_MAX 32    /* tasks: one bit each in the bitmap of CANCEL_ACK */
#define MF_PROBE_MAX 32     /* tasks: one bit each in the bitmap of PROBE_ACK */
#define MF_COMPLETE_MAX 32  /* completions in COMPLETE, as many as fit */
#define MF_ARGUMENT_MAX 16  /* bytes of argument inside a task */
#define MF_RESULT_MAX 1024  /* bytes of result inside a completion */
#define MF_WINDOW 64        /* sequences of a client that the switch remembers (T8) */
#define MF_LEVELS 8         /* priority levels; 1 is the highest */
#define MF_BY_REFERENCE 255 /* argument_length: the argument is a mf_blob_ref, fetched over TCP */
#define MF_BLOB_MAX (64u << 20)

/* Operations. Their numbers are the `operation` byte. */
#define MF_OPERATIONS(X)                                                                           \
    X(SUBMIT, 1)                                                                                   \
    X(SUBMIT_ACK, 2)                                                                               \
    X(REGISTER, 3)                                                                                 \
    X(REGISTERED, 4)                                                                               \
    X(RESET, 5)                                                                                    \
    X(RETRIEVE, 6)                                                                                 \
    X(ASSIGN, 7)                                                                                   \
    X(KEEPALIVE, 8)                                                                                \
    X(RELEASE, 9)                                                                                  \
    X(RELEASED, 10)                                                                                \
    X(COMPLETE, 11)                                                                                \
    X(COMPLETE_ACK, 12)                                                                            \
    X(PROBE, 13)                                                                                   \
    X(PROBE_ACK, 14)                                                                               \
    X(CANCEL, 15)                                                                                  \
    X(CANCEL_ACK, 16)                                                                              \
    X(NO_OP, 17)                                                                                   \
    X(COOKIE, 18)

enum mf_operation {
#define X(name, number) MF_OP_##name = number,
    MF_OPERATIONS(X)
#undef X
    MF_OP_END
};

/* Why a SUBMIT, REGISTER or CANCEL was not taken whole. */
enum mf_reason {
    MF_REASON_NONE = 0,
    MF_REASON_FULL = 1,         /* the queue has no room: try again later (T7) */
    MF_REASON_TOO_OLD = 2,      /* the sequence is below the window (T8), or of a registration before the slot's last */
    MF_REASON_CLIENTS_FULL = 3, /* no room for another client */
    MF_REASON_SLOTS_FULL = 4,   /* no room for another executor slot */
    MF_REASON_SHARE = 5,        /* the sender's address holds its share of what there is (T14): try again later */
};

/* How an attempt ended, in COMPLETE. */
enum mf_status {
    MF_STATUS_OK = 0,
    MF_STATUS_FAILED = 1,    /* the function returned an error or panicked; the result is its message */
    MF_STATUS_UNKNOWN = 2,   /* the executor knows no such function */
    MF_STATUS_ABANDONED = 3, /* the argument could not be fetched: try elsewhere */
};

/* What the client says of a completion, in COMPLETE_ACK. */
enum mf_ack_state {
    MF_ACK_DONE = 0,     /* have it, or do not want it: forget it */
    MF_ACK_FETCHING = 1, /* fetching the result by reference: keep it */
};

/* Whether the switch remembers a client, in PROBE_ACK. */
enum mf_known {
    MF_KNOWN_NO = 0,
    MF_KNOWN_YES = 1,
    MF_KNOWN_NO_RECORD = 2, /* it cannot say: this switch keeps no record of tasks, and `open` means nothing */
};

/* TASK_INFO: what a client says of a task. */
struct MF_WIRE mf_task_info {
    uint32_t tid;            /* task within the job; <uid, jid, tid> names it to people */
    uint32_t function;       /* TDESC: which function */
    uint8_t priority;        /* TPRIO: 1 (highest) to MF_LEVELS */
    uint8_t resources;       /* TRSRC: the executor must have at least these */
    uint8_t argument_length; /* 0 to MF_ARGUMENT_MAX, or MF_BY_REFERENCE */
    uint8_t attempt;         /* SUBMIT: attempts made before. ASSIGN: this attempt, from 1; stays at 255 */
    uint8_t argument[16];    /* TDESC: the argument, zero-padded, or a mf_blob_ref */
};

/* Where bytes that exceed the packet are: at the sender's IP address, this TCP port. */
struct MF_WIRE mf_blob_ref {
    uint64_t id;     /* random: knowing it is the permission to fetch */
    uint32_t length; /* bytes, at most MF_BLOB_MAX */
    uint16_t port;
    uint16_t reserved; /* 0 */
};

/* client -> switch: `count` (1 to MF_SUBMIT_MAX) mf_task_info follow. */
struct MF_WIRE mf_submit {
    struct mf_header header; /* sequence: names the submission; +1 for each new packet of the client */
    uint64_t client;         /* random identity of the client process: between it and the switch alone */
    uint64_t cookie;         /* the last one that the switch gave, or 0 */
    uint64_t token;          /* random: who completes its tasks repeats it */
    uint32_t uid; /* the user: one for all of a client's tasks, the last one said */
    uint32_t jid;
};

/* switch -> client. count repeats the SUBMIT's; bit i speaks of its record i. */
struct MF_WIRE mf_submit_ack {
    struct mf_header header;
    uint64_t client;
    uint32_t taken;     /* tasks that are now the switch's */
    uint32_t not_taken; /* tasks that are not; taken | not_taken covers all */
    uint8_t reason;     /* enum mf_reason, of not_taken */
    uint8_t reserved[3];
    uint32_t room; /* tasks that the queue still had room for: a hint for pacing */
};

/* executor -> switch: wants `count` (1 to MF_REGISTER_MAX) slots; no records. */
struct MF_WIRE mf_register {
    struct mf_header header;
    uint64_t executor; /* random identity of the executor process: between it and the switch alone */
    uint64_t cookie;   /* the last one that the switch gave, or 0 */
    uint32_t first;    /* local number of the first of these slots; the same one gets the same slot */
    uint8_t resources; /* what these slots offer */
    uint8_t reserved[3];
};

/* switch -> executor: `count` mf_slot follow, for the local numbers from `first` on. */
struct MF_WIRE mf_registered {
    struct mf_header header;
    uint64_t executor;
    uint32_t first;
    uint32_t lease_ms;      /* silence after which a slot's task goes to another */
    struct mf_address seen; /* the sender as the switch sees it: differs from its own behind NAT */
    uint8_t reason;         /* enum mf_reason, where count is less than was asked */
    uint8_t reserved;
    uint16_t poll_us; /* 0: a slot that finds no task is parked. Else it is told NO_OP, asks again after these
                       * microseconds, and a RETRIEVE carries one wait */
};

/* A slot in REGISTERED and RELEASED. */
struct MF_WIRE mf_slot_name {
    uint32_t slot;
    uint32_t generation; /* random, new at each registration */
};

/* A slot's wait for a task: in RETRIEVE, KEEPALIVE, RESET and NO_OP. */
struct MF_WIRE mf_wait {
    uint32_t slot;
    uint32_t generation;
    uint32_t sequence; /* in RETRIEVE larger than the slot's last: the last task is done, and the slot wants one */
};

/* switch -> executor. count 0: the epoch is not this switch's, all slots are void; else `count`
 * mf_wait follow, which are void. The executor registers them anew. */
struct MF_WIRE mf_reset {
    struct mf_header header;
    uint64_t counter; /* of the packet that this answers */
};

/* executor -> switch: `count` (1 to MF_SLOTS_MAX) mf_wait follow. */
struct MF_WIRE mf_retrieve {
    struct mf_header header;
    uint64_t counter;  /* of the executor's RETRIEVE, KEEPALIVE and RELEASE: +1 for each, from a random start */
    uint8_t resources; /* what these slots offer from now on */
    uint8_t reserved[7];
};

/* switch -> executor: `count` (1 to MF_SLOTS_MAX) mf_assignment follow. */
struct MF_WIRE mf_assign {
    struct mf_header header;
};

struct MF_WIRE mf_assignment {
    uint64_t token; /* the SUBMIT's: COMPLETE repeats it */
    uint32_t slot;
    uint32_t generation;
    uint32_t sequence;  /* the wait that this answers; answers to others are ignored */
    uint32_t waited_us; /* from the task's acceptance to this assignment, as the switch saw it */
    struct mf_task_info task;
    uint32_t uid;
    uint32_t jid;
    struct mf_address address; /* the client's */
    uint32_t submission;       /* the sequence of its SUBMIT */
    uint8_t index;             /* its record in that SUBMIT */
    uint8_t reserved[3];
};

/* switch -> executor: `count` (1 to MF_SLOTS_MAX) mf_wait follow, for which there is no task now: ask again after
 * `poll_us` of REGISTERED. Only from a switch that parks no slot. */
struct MF_WIRE mf_no_op {
    struct mf_header header;
};

/* executor -> switch: `count` (1 to MF_REGISTER_MAX) mf_wait follow, whose tasks run. Answered only by RESET. */
struct MF_WIRE mf_keepalive {
    struct mf_header header;
    uint64_t counter; /* as in RETRIEVE */
};

/* executor -> switch: `count` (1 to MF_SLOTS_MAX) mf_leave follow. */
struct MF_WIRE mf_release {
    struct mf_header header;
    uint64_t counter; /* as in RETRIEVE */
};

struct MF_WIRE mf_leave {
    uint32_t slot;
    uint32_t generation;
    uint32_t sequence; /* the slot's last wait */
    uint8_t done;      /* 1: its task is done. 0: the wait is withdrawn; a task given to it is queued again */
    uint8_t reserved[3];
};

/* switch -> executor: `count` mf_slot_name follow; the switch knows them no more. */
struct MF_WIRE mf_released {
    struct mf_header header;
    uint64_t counter; /* of the packet that this answers */
};

/* executor -> client: `count` (1 to MF_COMPLETE_MAX) mf_completion follow, each with its result behind it,
 * padded to a multiple of four bytes. The switch never parses it. */
struct MF_WIRE mf_complete {
    struct mf_header header; /* epoch: of the switch that assigned */
    uint64_t executor;       /* a public name of the executor process: no identity */
};

struct MF_WIRE mf_completion {
    uint64_t token;         /* as assigned */
    uint64_t ran_ns;        /* from start to end of the function */
    uint32_t submission;    /* with `index`: names the task to the client */
    uint32_t waited_us;     /* repeated from ASSIGN */
    uint32_t held_us;       /* from the arrival of ASSIGN to the start of the function */
    uint16_t result_length; /* bytes that follow, before padding: at most MF_RESULT_MAX */
    uint8_t index;
    uint8_t attempt;      /* as assigned */
    uint8_t status;       /* enum mf_status */
    uint8_t by_reference; /* 1: the result is a mf_blob_ref of 16 bytes */
    uint16_t reserved;    /* 0 */
};

/* client -> executor: `count` (1 to MF_COMPLETE_MAX) mf_completed follow. */
struct MF_WIRE mf_complete_ack {
    struct mf_header header;
};

struct MF_WIRE mf_completed {
    uint64_t token; /* the completion's, as all but the state */
    uint32_t submission;
    uint8_t index;
    uint8_t attempt;
    uint8_t state; /* enum mf_ack_state */
    uint8_t reserved;
};

/* A task, as its client submitted it: in PROBE and CANCEL. */
struct MF_WIRE mf_task_name {
    uint32_t submission;
    uint8_t index;
    uint8_t reserved[3];
};

/* client -> switch: which epoch is it, and does it still have these tasks? `count` (0 to MF_PROBE_MAX)
 * mf_task_name follow. The sequence is the client's own count of its probes, repeats too, and outside the window. */
struct MF_WIRE mf_probe {
    struct mf_header header;
    uint64_t client;
    uint64_t cookie; /* the last one that the switch gave, or 0 */
};

/* switch -> client. count repeats the PROBE's; bit i speaks of its record i. */
struct MF_WIRE mf_probe_ack {
    struct mf_header header;
    uint64_t client;
    struct mf_address seen; /* the sender as the switch sees it */
    uint32_t room;          /* tasks that the queue has room for */
    uint32_t open;          /* tasks that are queued or assigned; the others are done, taken out or unknown */
    uint8_t known;          /* enum mf_known */
    uint8_t reserved[3];
};

/* client -> switch: `count` (1 to MF_CANCEL_MAX) mf_task_name follow. Its sequence is drawn from the same
 * window as SUBMIT's, so a repeated CANCEL gets the same answer. */
struct MF_WIRE mf_cancel {
    struct mf_header header;
    uint64_t client;
    uint64_t cookie; /* the last one that the switch gave, or 0 */
};

/* switch -> client: bit i speaks of record i of the CANCEL. */
struct MF_WIRE mf_cancel_ack {
    struct mf_header header;
    uint64_t client;
    uint32_t taken_out; /* tasks that were queued and will not be assigned; the others may run */
    uint8_t reason;     /* enum mf_reason */
    uint8_t reserved[3];
};

/* switch -> client or executor: repeat the packet with this cookie. It proves that the sender receives what is sent to its
 * address, and is asked for before the switch makes a record, or sets or moves an address. */
struct MF_WIRE mf_cookie {
    struct mf_header header; /* sequence: of the packet that this answers */
    uint64_t identity;       /* the client's or executor's */
    uint64_t cookie;
};

#endif
