/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Packet formats of the tasks program: a fixed part, then `count` records of one size. */
#ifndef MIDFLIGHT_TASKS_WIRE_H
#define MIDFLIGHT_TASKS_WIRE_H

#include "midflight/wire.h"

/* Bounds of a packet's records and fields. */
#define MF_SUBMIT_MAX 32    /* tasks: one bit each in the bitmaps of SUBMIT_ACK */
#define MF_SLOTS_MAX 13     /* slots in RETRIEVE, ASSIGN, NO_OP, RELEASE: a full RETRIEVE is answered by one ASSIGN */
#define MF_REGISTER_MAX 32  /* slots in REGISTER, REGISTERED, RESET, KEEPALIVE */
#define MF_CANCEL_MAX 32    /* tasks in CANCEL, one bit each in the bitmap of CANCEL_ACK; in STOP */
#define MF_PROBE_MAX 32     /* tasks: one bit each in the bitmap of PROBE_ACK */
#define MF_COMPLETE_MAX 32  /* completions in COMPLETE, as many as fit */
#define MF_ARGUMENT_MAX 16  /* bytes of argument inside a task */
#define MF_RESULT_MAX 1024  /* bytes of result inside a completion */
#define MF_WINDOW 64        /* sequences of a client that the switch remembers (T8) */
#define MF_LEVELS 8         /* priority levels; 1 is the highest */
#define MF_SLOT_PLACES 2    /* places of a slot, for example its machine and its rack (T19) */
#define MF_PATIENCE_MAX 32768 /* milliseconds that a task waits for its place at most */
#define MF_DURABLE 1        /* bit of a client's identity: another process may continue under it */
#define MF_BY_REFERENCE 255 /* argument_length: the argument is a mf_blob_ref, fetched over TCP */
#define MF_APPENDED 254     /* argument_length: the argument is appended to the records, and a mf_appended has its length */
#define MF_APPENDED_MAX 480 /* bytes of an appended argument */
#define MF_APPENDED_UNIT 8  /* alignment of appended arguments */
#define MF_ARGUMENT_BLOB_MAX (64u << 20) /* bytes of an argument by reference */
#define MF_RESULT_BLOB_MAX 4294967295u   /* bytes of a result by reference: the range of `length` */

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
    X(COOKIE, 18)                                                                                  \
    X(STOP, 19)

enum mf_operation {
#define X(name, number) MF_OP_##name = number,
    MF_OPERATIONS(X)
#undef X
    MF_OP_END
};

/* Purpose of slots in REGISTER. */
enum mf_slot_kind {
    MF_KIND_ORDINARY = 0, /* tasks start at once */
    MF_KIND_AHEAD = 1,    /* prefetched tasks: refused first when slots become scarce (T14) */
};

/* `done` in RELEASE. Every other number means MF_LEAVE_DONE. */
enum mf_leave_how {
    MF_LEAVE_WITHDRAWN = 0, /* the slot leaves and withdraws its wait; a task assigned before is requeued */
    MF_LEAVE_DONE = 1,      /* the slot leaves; its task is done */
    MF_LEAVE_STAYS = 2,     /* as WITHDRAWN, but the slot stays registered, and its task's attempt, which never began, does not count */
};

/* Why a SUBMIT, REGISTER or CANCEL was not accepted completely. */
enum mf_reason {
    MF_REASON_NONE = 0,         /* accepted */
    MF_REASON_FULL = 1,         /* the queue has no room: try again later (T7) */
    MF_REASON_TOO_OLD = 2,      /* the sequence is below the client's window (T8), or older than the slot's last registration */
    MF_REASON_CLIENTS_FULL = 3,
    MF_REASON_SLOTS_FULL = 4,
    MF_REASON_SHARE = 5,        /* the sender's address already holds its share (T14): try again later */
};

/* How an attempt ended, in COMPLETE. */
enum mf_status {
    MF_STATUS_OK = 0,
    MF_STATUS_FAILED = 1,    /* the function returned an error or panicked; the result is its message */
    MF_STATUS_UNKNOWN = 2,   /* the executor knows no such function */
    MF_STATUS_ABANDONED = 3, /* the argument could not be fetched: another executor may be able to */
    MF_STATUS_CANCELLED = 4, /* stopped at the client's request (STOP) */
    MF_STATUS_PART = 5,      /* still running; the result says which part of its task it gives back */
};

/* State of a completion in COMPLETE_ACK. */
enum mf_ack_state {
    MF_ACK_DONE = 0,     /* the client has the result or does not want it: the executor may forget it */
    MF_ACK_FETCHING = 1, /* the client is fetching the result by reference: the executor must keep it */
    MF_ACK_PART = 2,     /* the client has recorded which part it got back */
};

/* Whether the switch remembers a client, in PROBE_ACK. */
enum mf_known {
    MF_KNOWN_NO = 0,
    MF_KNOWN_YES = 1,
    MF_KNOWN_NO_RECORD = 2, /* unknown, since this switch keeps no record of tasks; ignore `open` */
};

/*
 * Fields common to several packets:
 *
 *   client, executor   random identity of a process. Only that process and the switch know it, so no other can act for it.
 *   cookie             the switch's last one, or 0. It proves that the sender receives packets sent to its address; without it the
 *                      switch makes no record (T13).
 *   token              random, of one SUBMIT. Only its client, the switch and the executors of its tasks know it. It never travels
 *                      between client and executor, because after a process has ended another one may get its port.
 *   proof              that the sender knows the token of the record's SUBMIT: SipHash-2-4, under (token, a number of the record's
 *                      kind), of the record with a proof of 0. An observer can prove nothing else with it.
 *   slot, generation   a slot's number in the switch, and a random number of its registration, which protects the slot against
 *                      others.
 *   counter            of the executor, +1 for each RETRIEVE, KEEPALIVE and RELEASE from a random start: a copy of an old packet
 *                      has an old counter and is refused (T13). The answer repeats it, which identifies it.
 *   seen               the sender's address as the switch sees it. If it differs from the sender's own, a NAT separates them and
 *                      other parties cannot reach the sender, which can warn its user.
 */

/* TASK_INFO: a task as submitted. */
struct MF_WIRE mf_task_info {
    uint32_t tid;            /* task within the job. Only <uid, jid, tid> names a task for users; the protocol does not use it */
    uint32_t function;       /* TDESC: the function's number, because a switch cannot parse names */
    uint8_t priority;        /* TPRIO: 1 (highest) to MF_LEVELS. It selects the queue's level (T4) */
    uint8_t resources;       /* TRSRC: a mask; the executor must have at least these (T5) */
    uint8_t argument_length; /* 0 to MF_ARGUMENT_MAX; else MF_APPENDED or MF_BY_REFERENCE: a longer one */
    uint8_t attempt;         /* SUBMIT: attempts so far. ASSIGN: this attempt, from 1, which tells apart the completions of a task that
                              * runs twice. Stays at 255 */
    uint8_t argument[16];    /* TDESC: the argument, zero-padded, or a mf_appended or mf_blob_ref. All records have a constant size */
};

/* In place of an argument that is appended to the packet's records: those of a packet follow each other in the order of their tasks, each
 * zero-padded to a multiple of MF_APPENDED_UNIT bytes. */
struct MF_WIRE mf_appended {
    uint16_t length; /* MF_ARGUMENT_MAX + 1 to MF_APPENDED_MAX */
    uint8_t reserved[14];
};

/* Locates bytes that exceed the packet: the sender's IP address and this TCP port. Bulk data never passes the switch. */
struct MF_WIRE mf_blob_ref {
    uint64_t id;       /* random; permits its holder to fetch the bytes */
    uint32_t length;   /* bytes, bounded as above, so the receiver can refuse before it connects */
    uint16_t port;     /* TCP. The packet has the IP address */
    uint16_t reserved;
};

/* client -> switch: queue these tasks. `count` (1 to MF_SUBMIT_MAX) mf_task_info follow, then appended arguments, then one
 * mf_preference if these tasks have one. */
struct MF_WIRE mf_submit {
    struct mf_header header; /* sequence: +1 for each new packet of the client; a repeat has the same and is not queued twice */
    uint64_t client;
    uint64_t cookie;
    uint64_t token;
    uint32_t uid; /* the user. The switch keeps the last one per client */
    uint32_t jid; /* the job, the same for all tasks of a SUBMIT */
};

/* Optional end of a SUBMIT: where its tasks prefer to run (T19). */
struct MF_WIRE mf_preference {
    uint32_t place;       /* a place that slots name in REGISTER; 0: anywhere */
    uint32_t patience_ms; /* how long they wait for a slot there before they go anywhere; capped at MF_PATIENCE_MAX */
};

/* switch -> client. count repeats the SUBMIT's; bit i is for its record i. Bitmaps keep the answer small enough for the switch to store and
 * repeat (T8). */
struct MF_WIRE mf_submit_ack {
    struct mf_header header;
    uint64_t client;    /* the SUBMIT's, as proof against forged answers */
    uint32_t taken;     /* tasks that the switch has accepted */
    uint32_t not_taken; /* tasks that the client must submit again; taken | not_taken covers all */
    uint8_t reason;     /* enum mf_reason for not_taken: tells the client when to retry */
    uint8_t reserved[3];
    uint32_t room; /* free places in the queue, with which the client paces itself */
};

/* executor -> switch: register `count` (1 to MF_REGISTER_MAX) slots. No records follow, because their local numbers are consecutive. */
struct MF_WIRE mf_register {
    struct mf_header header;
    uint64_t executor;
    uint64_t cookie;
    uint32_t first;    /* the executor's number of the first slot; the same number gets the same slot, so a repeat uses no second one */
    uint8_t resources; /* a mask: what these slots offer to tasks */
    uint8_t kind;      /* enum mf_slot_kind */
    uint16_t counter;  /* bits 16 to 31 of the executor's next counter: initial value for a switch that compares only the lower half */
    uint32_t places[MF_SLOT_PLACES]; /* places of these slots: hashes of names; 0: none */
};

/* switch -> executor: `count` mf_slot_name follow, for the local numbers from `first` on. */
struct MF_WIRE mf_registered {
    struct mf_header header;
    uint64_t executor;
    uint32_t first;         /* the REGISTER's, to identify the slots */
    uint32_t lease_ms;      /* a slot silent for this long loses its task (T10); determines the KEEPALIVE interval */
    struct mf_address seen;
    uint8_t reason;         /* enum mf_reason, if count is less than requested */
    uint8_t reserved;
    uint16_t poll_us; /* 0: a slot that finds no task is parked. Otherwise the switch cannot park: it answers NO_OP, the slot polls again
                       * after these microseconds, and a RETRIEVE carries one wait */
};

struct MF_WIRE mf_slot_name {
    uint32_t slot;
    uint32_t generation; /* new at each registration */
};

/* A slot's wait for a task: in RETRIEVE, KEEPALIVE, RESET and NO_OP. It names the wait, so that a late packet does not affect the slot's
 * next task (T16). */
struct MF_WIRE mf_wait {
    uint32_t slot;
    uint32_t generation;
    uint32_t sequence; /* in RETRIEVE: a larger number than the slot's last reports its task done and requests another; an equal number
                        * is a repeat and gets the same task */
};

/* switch -> executor: register these slots again. count 0: the epoch is not this switch's, so all slots are void; otherwise those of the
 * `count` mf_wait that follow. */
struct MF_WIRE mf_reset {
    struct mf_header header;
    uint64_t counter; /* of the request: a forged RESET must guess it */
};

/* executor -> switch: these slots want a task. `count` (1 to MF_SLOTS_MAX) mf_wait follow. */
struct MF_WIRE mf_retrieve {
    struct mf_header header; /* sequence: of a prefetch, a number not 0 that the answer repeats; else 0 */
    uint64_t counter;
    uint8_t resources; /* the slots' new resources: can change without a new registration */
    uint8_t ahead;     /* 1: prefetch. These waits take a queued task or nothing and are never parked, so that no busy executor gets a
                        * task while another is free (T6) */
    uint8_t reserved[6];
};

/* switch -> executor: `count` (1 to MF_SLOTS_MAX) mf_assignment follow, then appended arguments. */
struct MF_WIRE mf_assign {
    struct mf_header header; /* sequence: the prefetch RETRIEVE's: its waits that are not listed got nothing; else 0 */
};

/* A task for a slot, with all that the executor needs to run it and to answer its client. */
struct MF_WIRE mf_assignment {
    uint64_t token; /* the SUBMIT's, for proofs */
    uint32_t slot;
    uint32_t generation;
    uint32_t sequence;  /* the wait that this answers; the executor ignores answers to older ones */
    uint32_t waited_us; /* from acceptance to this assignment, by the switch's clock: for the client's statistics */
    struct mf_task_info task;
    uint32_t uid; /* the client's, like `jid`, for use by the function */
    uint32_t jid;
    struct mf_address address; /* the client's: the completion goes there directly */
    uint32_t submission;       /* sequence of its SUBMIT; with `index` it names the task to the client */
    uint8_t index;             /* its record in that SUBMIT */
    uint8_t reserved[3];
};

/* switch -> executor: no task now for the `count` (1 to MF_SLOTS_MAX) mf_wait that follow. Either they were prefetches, or the switch does
 * not park and they poll again after `poll_us` of REGISTERED. */
struct MF_WIRE mf_no_op {
    struct mf_header header; /* sequence: as in ASSIGN */
};

/* executor -> switch: the tasks of the `count` (1 to MF_REGISTER_MAX) mf_wait that follow still run. Renews their leases. Only RESET
 * answers it. */
struct MF_WIRE mf_keepalive {
    struct mf_header header; /* epoch 0: only asks for the switch's epoch; renews nothing */
    uint64_t counter;
};

/* executor -> switch: these slots withdraw their last wait. `count` (1 to MF_SLOTS_MAX) mf_leave follow. */
struct MF_WIRE mf_release {
    struct mf_header header;
    uint64_t counter;
};

/* A slot in RELEASE: it leaves, or returns its task. */
struct MF_WIRE mf_leave {
    uint32_t slot;
    uint32_t generation;
    uint32_t sequence;
    uint8_t done;      /* enum mf_leave_how */
    uint8_t reserved[3];
};

/* switch -> executor: confirms the RELEASE of the `count` mf_slot_name that follow. Without it the executor repeats RELEASE. */
struct MF_WIRE mf_released {
    struct mf_header header;
    uint64_t counter; /* of the request: a forged RELEASED must guess it */
};

/* executor -> client: `count` (1 to MF_COMPLETE_MAX) mf_completion follow, each with its result, padded to a multiple of four bytes. No
 * switch parses it, so its records may differ in length. */
struct MF_WIRE mf_complete {
    struct mf_header header; /* epoch: of the switch that assigned */
    uint64_t executor;       /* a public name of the executor; not its identity, which stays secret */
};

/* The end of one attempt, in COMPLETE. */
struct MF_WIRE mf_completion {
    uint64_t proof;         /* under (token, 1), of `executor`, this record and its result: the client ignores a completion without it */
    uint64_t ran_ns;        /* run time of the function; this and the next two times are for the client's statistics */
    uint32_t submission;    /* with `index`: names the task to the client */
    uint32_t waited_us;     /* repeated from ASSIGN: the time in the queue */
    uint32_t held_us;       /* from the arrival of ASSIGN to the start of the function */
    uint16_t result_length; /* bytes that follow, before padding: at most MF_RESULT_MAX */
    uint8_t index;        /* the task's record in the SUBMIT */
    uint8_t attempt;      /* as assigned: the acknowledgement refers to it */
    uint8_t status;
    uint8_t by_reference; /* 1: the result did not fit and is a mf_blob_ref of 16 bytes. Its id is hidden by XOR with SipHash-2-4 of the
                           * proof under (token, 4); the proof covers the plain reference */
    uint16_t reserved;    /* 0 */
};

/* client -> executor: `count` (1 to MF_COMPLETE_MAX) mf_completed follow. Without it the executor repeats a COMPLETE. */
struct MF_WIRE mf_complete_ack {
    struct mf_header header;
};

/* An acknowledged completion. All fields but proof and state are copied from it. */
struct MF_WIRE mf_completed {
    uint64_t proof; /* under (token, 2) */
    uint32_t submission;
    uint8_t index;
    uint8_t attempt;
    uint8_t state; /* enum mf_ack_state */
    uint8_t reserved;
};

/* A task's name in PROBE and CANCEL, as submitted. */
struct MF_WIRE mf_task_name {
    uint32_t submission; /* sequence of its SUBMIT */
    uint8_t index;       /* its record in that SUBMIT */
    uint8_t reserved[3];
};

/* client -> switch: asks for the epoch, and which of these tasks the switch still has. `count` (0 to MF_PROBE_MAX) mf_task_name follow. */
struct MF_WIRE mf_probe {
    struct mf_header header; /* sequence: counts all probes including repeats, apart from SUBMIT's window: each answer is fresh and
                              * measures a round trip */
    uint64_t client;
    uint64_t cookie;
};

/* switch -> client. count repeats the PROBE's; bit i is for its record i. */
struct MF_WIRE mf_probe_ack {
    struct mf_header header;
    uint64_t client;
    struct mf_address seen;
    uint32_t room; /* free places in the queue */
    uint32_t open; /* tasks queued or assigned; the client must submit the others again unless it has their results */
    uint8_t known; /* enum mf_known: a switch that has forgotten the client cannot recognise repeats */
    uint8_t reserved[3];
};

/* client -> switch: cancel these. `count` (1 to MF_CANCEL_MAX) mf_task_name follow. */
struct MF_WIRE mf_cancel {
    struct mf_header header; /* sequence: from SUBMIT's window, so that a repeat gets the same answer */
    uint64_t client;
    uint64_t cookie;
};

/* switch -> client: outcome of a CANCEL. `count` (0 to MF_CANCEL_MAX) mf_holder follow for assigned tasks. The switch will not assign them
 * again, and the client asks their executors to stop: a switch answers with one packet, so it cannot. */
struct MF_WIRE mf_cancel_ack {
    struct mf_header header;
    uint64_t client;
    uint32_t taken_out; /* bit i: record i of the CANCEL was queued and will not run. The switch does not have tasks with neither a bit
                         * nor a holder (any more) */
    uint8_t reason;     /* enum mf_reason */
    uint8_t reserved[3];
};

struct MF_WIRE mf_holder {
    struct mf_address executor;
    uint8_t index; /* the task's record in the CANCEL */
    uint8_t reserved[3];
};

/* client or switch -> executor: stop these tasks; a switch sends it after it has dropped the client. `count` (1 to MF_CANCEL_MAX)
 * mf_run_name follow. The COMPLETE of each task answers it, as soon as the task has ended; unknown tasks get no answer. */
struct MF_WIRE mf_stop {
    struct mf_header header; /* epoch: of the switch that named the executor, or sends this */
};

/* A task of an executor, in STOP. */
struct MF_WIRE mf_run_name {
    uint64_t proof;      /* under (token, 3) */
    uint32_t submission; /* sequence of its SUBMIT */
    uint8_t index;       /* its record in that SUBMIT */
    uint8_t reserved[3];
};

/* switch -> client or executor: repeat the packet with this cookie. The switch requires a cookie before it makes a record, or sets or
 * changes an address, and keeps nothing of the packet: so forged addresses cost it no memory. */
struct MF_WIRE mf_cookie {
    struct mf_header header; /* sequence: the request's */
    uint64_t identity;       /* the client's or executor's, which the cookie is for */
    uint64_t cookie;
};

#endif
