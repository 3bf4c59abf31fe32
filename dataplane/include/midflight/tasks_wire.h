/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The packet formats of the tasks program: a fixed part, then `count` records of one size. */
#ifndef MIDFLIGHT_TASKS_WIRE_H
#define MIDFLIGHT_TASKS_WIRE_H

#include "midflight/wire.h"

/* How many records a packet may carry. */
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
#define MF_SLOT_PLACES 2    /* places that a slot may be at: its machine and its rack, say (T19) */
#define MF_PATIENCE_MAX 32768 /* milliseconds that a task waits for its place at most */
#define MF_DURABLE 1        /* bit of a client's identity: another process may go on in its name */
#define MF_BY_REFERENCE 255 /* argument_length: the argument is a mf_blob_ref, fetched over TCP */
#define MF_ARGUMENT_BLOB_MAX (64u << 20) /* bytes of an argument by reference */
#define MF_PACK_UNIT 16     /* arguments in a pack begin at multiples of so many bytes */
#define MF_PIECES_MAX 64    /* pieces of an argument in ARGUMENT, each of MF_PACK_UNIT bytes */
#define MF_RESULT_BLOB_MAX 4294967295u   /* bytes of a result by reference: all that `length` can say */

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
    X(STOP, 19)                                                                                    \
    X(ARGUMENT, 20)

enum mf_operation {
#define X(name, number) MF_OP_##name = number,
    MF_OPERATIONS(X)
#undef X
    MF_OP_END
};

/* What slots are for, in REGISTER. */
enum mf_slot_kind {
    MF_KIND_ORDINARY = 0, /* for tasks that start at once */
    MF_KIND_AHEAD = 1,    /* for tasks that are taken ahead: refused first where slots become few (T14) */
};

/* What RELEASE says of a slot. Every other number means MF_LEAVE_DONE. */
enum mf_leave_how {
    MF_LEAVE_WITHDRAWN = 0, /* it leaves and withdraws its wait; a task given to it meanwhile is queued again */
    MF_LEAVE_DONE = 1,      /* it leaves; its task is done */
    MF_LEAVE_STAYS = 2,     /* as WITHDRAWN, but it stays registered, and the attempt of its task does not count: it never began */
};

/* Why a SUBMIT, REGISTER or CANCEL was not taken as a whole. */
enum mf_reason {
    MF_REASON_NONE = 0,         /* it was */
    MF_REASON_FULL = 1,         /* the queue has no room: try again later (T7) */
    MF_REASON_TOO_OLD = 2,      /* the sequence is below the client's window (T8), or older than the slot's last registration */
    MF_REASON_CLIENTS_FULL = 3, /* no room for another client */
    MF_REASON_SLOTS_FULL = 4,   /* no room for another executor slot */
    MF_REASON_SHARE = 5,        /* the sender's address already holds its share (T14): try again later */
};

/* How an attempt ended, in COMPLETE. */
enum mf_status {
    MF_STATUS_OK = 0,
    MF_STATUS_FAILED = 1,    /* the function returned an error or panicked; the result is its message */
    MF_STATUS_UNKNOWN = 2,   /* the executor knows no such function */
    MF_STATUS_ABANDONED = 3, /* the argument could not be fetched: another executor may be able to */
    MF_STATUS_CANCELLED = 4, /* the client asked to stop it (STOP), and it has stopped */
    MF_STATUS_PART = 5,      /* it runs on, and gives back a part of its task; the result says which */
};

/* What the client says of a completion, in COMPLETE_ACK. */
enum mf_ack_state {
    MF_ACK_DONE = 0,     /* the client has the result, or does not want it: the executor may forget it */
    MF_ACK_FETCHING = 1, /* the client is fetching the result by reference: the executor must keep it */
    MF_ACK_PART = 2,     /* the client knows which part it got back */
};

/* Whether the switch remembers a client, in PROBE_ACK. */
enum mf_known {
    MF_KNOWN_NO = 0,
    MF_KNOWN_YES = 1,
    MF_KNOWN_NO_RECORD = 2, /* this switch keeps no record of tasks, so it cannot say; ignore `open` */
};

/*
 * Fields that several packets have for one reason:
 *
 *   client, executor   random identity of a process. Only that process and the switch know it, so nobody else can act for it.
 *   cookie             the last one that the switch gave, or 0. It proves that the sender receives what is sent to its address;
 *                      without that the switch makes no record (T13).
 *   token              random, of one SUBMIT. Only its client, the switch and the executors that were given tasks of it know it: it
 *                      never travels between client and executor, because a process ends and another one gets its port.
 *   proof              that its sender knows the token of the record's SUBMIT: SipHash-2-4, under (token, a number of the record's
 *                      kind), of the record with a proof of 0. Who sees it can prove nothing else by it.
 *   slot, generation   a slot's number in the switch, and a random number of its registration: without the generation nobody
 *                      can act for the slot.
 *   counter            of the executor, +1 for each RETRIEVE, KEEPALIVE and RELEASE from a random start: a copy of an old packet
 *                      has an old counter, and is refused (T13). An answer repeats it, so it cannot be taken for another's.
 *   seen               the sender's address as the switch sees it. If it differs from the sender's own, there is NAT between them,
 *                      where other parties cannot reach the sender: it can warn its user.
 */

/* TASK_INFO: what a client says of a task. */
struct MF_WIRE mf_task_info {
    uint32_t tid;            /* task within the job. People name a task by <uid, jid, tid>; the protocol does not use it */
    uint32_t function;       /* TDESC: which function. A number, because a switch cannot parse names */
    uint8_t priority;        /* TPRIO: 1 (highest) to MF_LEVELS. It selects the queue's level (T4) */
    uint8_t resources;       /* TRSRC: a mask; the executor must have at least these (T5) */
    uint8_t argument_length; /* 0 to MF_ARGUMENT_MAX; MF_BY_REFERENCE: `argument` says where a longer one is */
    uint8_t attempt;         /* SUBMIT: attempts made before. ASSIGN: this attempt, from 1, so that completions of a task that
                              * runs twice differ. It stays at 255 */
    uint8_t argument[16];    /* TDESC: the argument, zero-padded, or a mf_blob_ref. Of constant size: so are all records */
};

/* Where bytes are that exceed the packet: at the sender's IP address, this TCP port. Bulk data never passes the queue. */
struct MF_WIRE mf_blob_ref {
    uint64_t id;       /* random: whoever knows it may fetch the bytes */
    uint32_t length;   /* bytes, bounded as above: the receiver can refuse before it connects */
    uint16_t port;     /* TCP. The IP address is not here: the receiver has it from the packet */
    uint16_t at;       /* 0: the bytes are a blob. Else they begin MF_PACK_UNIT * (at - 1) bytes into a pack, of many arguments */
};

/* client -> switch: queue these tasks. `count` (1 to MF_SUBMIT_MAX) mf_task_info follow, and behind them one mf_preference if
 * these tasks have one. */
struct MF_WIRE mf_submit {
    struct mf_header header; /* sequence: +1 for each new packet of the client; a repeat has the same, and is not queued twice */
    uint64_t client;
    uint64_t cookie;
    uint64_t token;
    uint32_t uid; /* the user. The switch keeps one for a client, the last one: a process has one user */
    uint32_t jid; /* the job. Once for all tasks here: a SUBMIT never mixes jobs */
};

/* The end of a SUBMIT whose tasks prefer to run somewhere (T19). Most tasks do not, and pay nothing for it. */
struct MF_WIRE mf_preference {
    uint32_t place;       /* where: a number that slots name in REGISTER; 0: anywhere */
    uint32_t patience_ms; /* how long they wait for a slot there, before they go anywhere; more than MF_PATIENCE_MAX counts as that */
};

/* switch -> client. count repeats the SUBMIT's; bit i is about its record i. Bitmaps make the answer so small that the switch
 * can store it and repeat it (T8). */
struct MF_WIRE mf_submit_ack {
    struct mf_header header;
    uint64_t client;    /* the SUBMIT's: an attacker that forges an answer must know it */
    uint32_t taken;     /* tasks that the switch is now responsible for */
    uint32_t not_taken; /* tasks that the client still has to submit; taken | not_taken covers all */
    uint8_t reason;     /* enum mf_reason, of not_taken: it decides when trying again makes sense */
    uint8_t reserved[3];
    uint32_t room; /* tasks that the queue still had room for: by it the client paces itself before the queue is full */
};

/* executor -> switch: register `count` (1 to MF_REGISTER_MAX) slots; no records, because their local numbers are consecutive. */
struct MF_WIRE mf_register {
    struct mf_header header;
    uint64_t executor;
    uint64_t cookie;
    uint32_t first;    /* the executor's own number of the first of these slots; the same number gets the same slot, so a repeat
                        * does not use up another one */
    uint8_t resources; /* a mask: what these slots offer to tasks */
    uint8_t kind;      /* enum mf_slot_kind */
    uint16_t counter;  /* bits 16 to 31 of the executor's next counter: where a switch begins that compares its lower half only */
    uint32_t places[MF_SLOT_PLACES]; /* where these slots are: numbers that people's names are hashed to; 0: none */
};

/* switch -> executor: `count` mf_slot_name follow, for the local numbers from `first` on. */
struct MF_WIRE mf_registered {
    struct mf_header header;
    uint64_t executor;
    uint32_t first;         /* the REGISTER's: says which slots these are */
    uint32_t lease_ms;      /* after this silence a slot's task goes to another (T10); sets how often to send KEEPALIVE */
    struct mf_address seen;
    uint8_t reason;         /* enum mf_reason, where count is less than was asked for */
    uint8_t reserved;
    uint16_t poll_us; /* 0: a slot that finds no task is parked. Else the switch cannot park: it answers NO_OP, the slot asks again
                       * after these microseconds, and a RETRIEVE carries one wait */
};

/* A slot in REGISTERED and RELEASED. */
struct MF_WIRE mf_slot_name {
    uint32_t slot;
    uint32_t generation; /* new at each registration */
};

/* A slot's wait for a task: in RETRIEVE, KEEPALIVE, RESET and NO_OP. They name the wait, not only the slot, so that a late packet
 * does not concern the slot's next task (T16). */
struct MF_WIRE mf_wait {
    uint32_t slot;
    uint32_t generation;
    uint32_t sequence; /* in RETRIEVE: larger than the slot's last says that the last task is done and the slot wants another; equal
                        * is a repeat, which gets the same task again */
};

/* switch -> executor: register these slots anew. count 0: the epoch is not this switch's, so all slots are void; else the
 * `count` mf_wait that follow are. */
struct MF_WIRE mf_reset {
    struct mf_header header;
    uint64_t counter; /* of the packet that this answers: a forged RESET must guess it */
};

/* executor -> switch: these slots want a task. `count` (1 to MF_SLOTS_MAX) mf_wait follow. */
struct MF_WIRE mf_retrieve {
    struct mf_header header; /* sequence: of waits ahead, a number that the answer repeats, not 0; else 0 */
    uint64_t counter;
    uint8_t resources; /* what these slots offer from now on: resources can change without a new registration */
    uint8_t ahead;     /* 1: these slots' tasks are to run later. They take a queued task or nothing, and are never parked, so that
                        * no task goes to a busy executor while another one is free (T6) */
    uint8_t reserved[6];
};

/* switch -> executor: `count` (1 to MF_SLOTS_MAX) mf_assignment follow. */
struct MF_WIRE mf_assign {
    struct mf_header header; /* sequence: of the RETRIEVE of waits ahead that this answers: those of its waits that are not named
                              * here got nothing; else 0 */
};

/* A task for a slot, with all that the executor needs to run it and to answer its client without asking the switch. */
struct MF_WIRE mf_assignment {
    uint64_t token; /* the SUBMIT's, for proofs */
    uint32_t slot;
    uint32_t generation;
    uint32_t sequence;  /* the wait that this answers; the executor ignores answers to older ones */
    uint32_t waited_us; /* from the task's acceptance to this assignment, by the switch's clock: for the client's statistics */
    struct mf_task_info task;
    uint32_t uid; /* the client's, as `jid` for the function that runs: it may want to know whose task it is */
    uint32_t jid;
    struct mf_address address; /* the client's: the completion goes there, not through the switch */
    uint32_t submission;       /* the sequence of its SUBMIT; with `index` it names the task to the client */
    uint8_t index;             /* its record in that SUBMIT */
    uint8_t reserved[3];
};

/* switch -> executor: no task now for the `count` (1 to MF_SLOTS_MAX) mf_wait that follow. They were waits ahead; or the switch
 * parks no slots, and they ask again after `poll_us` of REGISTERED. */
struct MF_WIRE mf_no_op {
    struct mf_header header; /* sequence: as in ASSIGN */
};

/* executor -> switch: the tasks of the `count` (1 to MF_REGISTER_MAX) mf_wait that follow still run. It renews their leases.
 * Answered only by RESET. */
struct MF_WIRE mf_keepalive {
    struct mf_header header; /* epoch 0: only asks whether a switch is alive, and for its epoch; it renews nothing */
    uint64_t counter;
};

/* executor -> switch: these slots do not want what they waited for. `count` (1 to MF_SLOTS_MAX) mf_leave follow. */
struct MF_WIRE mf_release {
    struct mf_header header;
    uint64_t counter;
};

/* A slot in RELEASE: it leaves, or gives back what it was given. */
struct MF_WIRE mf_leave {
    uint32_t slot;
    uint32_t generation;
    uint32_t sequence; /* the slot's last wait */
    uint8_t done;      /* enum mf_leave_how */
    uint8_t reserved[3];
};

/* switch -> executor: the RELEASE of the `count` mf_slot_name that follow was done. Without it the executor repeats RELEASE. */
struct MF_WIRE mf_released {
    struct mf_header header;
    uint64_t counter; /* of the packet that this answers: a forged RELEASED must guess it */
};

/* executor -> client: `count` (1 to MF_COMPLETE_MAX) mf_completion follow, each with its result behind it, padded to a multiple
 * of four bytes. No switch parses it, so its records may differ in length. */
struct MF_WIRE mf_complete {
    struct mf_header header; /* epoch: of the switch that assigned */
    uint64_t executor;       /* a public name of the executor, to tell executors apart; not its identity, which stays secret */
};

/* The end of one attempt, in COMPLETE. */
struct MF_WIRE mf_completion {
    uint64_t proof;         /* under (token, 1), of `executor`, this record and its result: the client ignores what is not proven */
    uint64_t ran_ns;        /* from start to end of the function, for the client's statistics as the next two times */
    uint32_t submission;    /* with `index`: names the task to the client */
    uint32_t waited_us;     /* repeated from ASSIGN: the time in the queue */
    uint32_t held_us;       /* from the arrival of ASSIGN to the start of the function */
    uint16_t result_length; /* bytes that follow, before padding: at most MF_RESULT_MAX */
    uint8_t index;        /* the task's record in the SUBMIT */
    uint8_t attempt;      /* as assigned: the acknowledgement says which attempt it means */
    uint8_t status;       /* enum mf_status */
    uint8_t by_reference; /* 1: the result did not fit, and is a mf_blob_ref of 16 bytes, whose id is hidden: by XOR with SipHash-2-4
                           * of the proof under (token, 4). The proof is of the reference before */
    uint16_t reserved;    /* 0 */
};

/* client -> executor: `count` (1 to MF_COMPLETE_MAX) mf_completed follow. Without it the executor repeats a COMPLETE. */
struct MF_WIRE mf_complete_ack {
    struct mf_header header;
};

/* An acknowledged completion. All fields but the proof and the state are copied from it, and name it. */
struct MF_WIRE mf_completed {
    uint64_t proof; /* under (token, 2) */
    uint32_t submission;
    uint8_t index;
    uint8_t attempt;
    uint8_t state; /* enum mf_ack_state */
    uint8_t reserved;
};

/* A task, as its client submitted it: in PROBE and CANCEL. */
struct MF_WIRE mf_task_name {
    uint32_t submission; /* the sequence of its SUBMIT */
    uint8_t index;       /* its record in that SUBMIT */
    uint8_t reserved[3];
};

/* client -> switch: what is your epoch, and do you still have these tasks? `count` (0 to MF_PROBE_MAX) mf_task_name follow. */
struct MF_WIRE mf_probe {
    struct mf_header header; /* sequence: counts all probes, repeats too, apart from the window of SUBMIT: each answer is fresh,
                              * and the round trip can be measured by it */
    uint64_t client;
    uint64_t cookie;
};

/* switch -> client. count repeats the PROBE's; bit i is about its record i. */
struct MF_WIRE mf_probe_ack {
    struct mf_header header;
    uint64_t client;
    struct mf_address seen;
    uint32_t room; /* tasks that the queue has room for */
    uint32_t open; /* tasks that are queued or assigned; the client has to submit the others again, if it has no result of them */
    uint8_t known; /* enum mf_known: a switch that has forgotten the client cannot recognise repeats */
    uint8_t reserved[3];
};

/* client -> switch: do not run these. `count` (1 to MF_CANCEL_MAX) mf_task_name follow. */
struct MF_WIRE mf_cancel {
    struct mf_header header; /* sequence: from the same window as SUBMIT's, so that a repeat gets the same answer */
    uint64_t client;
    uint64_t cookie;
};

/* switch -> client: what became of the tasks of a CANCEL. `count` (0 to MF_CANCEL_MAX) mf_holder follow, for those that executors
 * have: they will not be assigned again, and the client itself asks these executors to stop them. A switch answers with one packet,
 * so it cannot ask them. */
struct MF_WIRE mf_cancel_ack {
    struct mf_header header;
    uint64_t client;
    uint32_t taken_out; /* bit i: record i of the CANCEL was queued and will not run. Tasks with neither a bit nor a holder are not
                         * the switch's (any more) */
    uint8_t reason;     /* enum mf_reason */
    uint8_t reserved[3];
};

/* Which executor has a task, in CANCEL_ACK. */
struct MF_WIRE mf_holder {
    struct mf_address executor;
    uint8_t index; /* the task's record in the CANCEL */
    uint8_t reserved[3];
};

/* client or switch -> executor: stop these tasks; a switch says so where the client was given up. `count` (1 to MF_CANCEL_MAX) mf_run_name
 * follow. Answered by the COMPLETE of each, as soon as it has ended; tasks that do not run there get no answer. */
struct MF_WIRE mf_stop {
    struct mf_header header; /* epoch: of the switch that named the executor, or sends it */
};

/* A task that an executor has, in STOP. */
struct MF_WIRE mf_run_name {
    uint64_t proof;      /* under (token, 3) */
    uint32_t submission; /* the sequence of its SUBMIT */
    uint8_t index;       /* its record in that SUBMIT */
    uint8_t reserved[3];
};

/* client -> executor: the argument of a task that it probably gets, so that it need not fetch it. `count` (2 to MF_PIECES_MAX) mf_piece
 * follow. Nothing answers it, and no switch sees it. It is encrypted under the id of the task's mf_blob_ref, which is not here: who
 * gets this in the executor's place can do nothing with it. */
struct MF_WIRE mf_argument {
    struct mf_header header; /* epoch: 0 */
    uint64_t name;           /* of the argument, for who has the reference */
    uint8_t tag[16];         /* proves that the sender has the reference, and sent these bytes */
    uint32_t length;         /* of the argument, in bytes */
    uint32_t reserved;
};

/* Bytes of an argument, encrypted. */
struct MF_WIRE mf_piece {
    uint8_t bytes[MF_PACK_UNIT]; /* behind the argument's end: 0 */
};

/* switch -> client or executor: repeat the packet with this cookie. The switch asks for it before it makes a record, or sets or
 * changes an address, and it keeps nothing of the packet: so forged addresses cost it no memory. */
struct MF_WIRE mf_cookie {
    struct mf_header header; /* sequence: of the packet that this answers */
    uint64_t identity;       /* the client's or executor's: says for whom the cookie is */
    uint64_t cookie;
};

#endif
