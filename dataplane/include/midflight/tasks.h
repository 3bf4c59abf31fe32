/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The tasks program of the soft engine: the cluster's task queue, with the interface of switch.h. `docs/internals/core.md` explains its
 * structures, `docs/internals/tasks.md` the protocol.
 */
#ifndef MIDFLIGHT_TASKS_H
#define MIDFLIGHT_TASKS_H

#include "midflight/switch.h"
#include "midflight/tasks_verdict.h"
#include "midflight/tasks_wire.h"

#define MF_QUEUE_MAX (4u << 20)
#define MF_EXECUTOR_SLOTS_MAX (1u << 20)
#define MF_CLIENTS_MAX (1u << 20)
#define MF_PLACES_MAX (64u << 10)
#define MF_ARGUMENTS_MIN 8u /* KiB for appended arguments: a second source still finds room for the longest (T14) */
#define MF_ARGUMENTS_MAX (2u << 20)
#define MF_TICK_WISHES 1024  /* tasks out of patience that one tick moves */
#define MF_TICK_SLOTS 1024   /* slots visited per tick */
#define MF_TICK_CLIENTS 64   /* clients visited per tick */
#define MF_TICK_RECORDS 256  /* task records visited per tick */
#define MF_PURGE_RECORDS 1024 /* task records visited per call of a purge */
#define MF_WAIT_BUCKETS 40   /* bucket b counts waits of [2^(b-1), 2^b) us; bucket 0 those below 1 us */

struct mf_tasks;

struct mf_tasks_config {
    uint32_t queue;          /* task records, queued and assigned: 1 to MF_QUEUE_MAX */
    uint32_t slots;          /* executor slots: 1 to MF_EXECUTOR_SLOTS_MAX */
    uint32_t clients;        /* 1 to MF_CLIENTS_MAX */
    uint32_t levels;         /* priority levels: 1 to MF_LEVELS */
    uint32_t places;         /* places of slots: 1 to MF_PLACES_MAX */
    uint32_t arguments;      /* KiB for appended arguments: MF_ARGUMENTS_MIN to MF_ARGUMENTS_MAX */
    uint64_t lease_ns;       /* T10: silence after which an assigned task is requeued; a parked slot is unparked after half of it */
    uint64_t slot_idle_ns;   /* silence after which an idle slot is removed */
    uint64_t client_idle_ns; /* silence after which a client's tasks are dropped, and a client without tasks is removed */
    uint64_t cookie_ns;      /* length of a cookie interval; a cookie is valid in its own interval and the next. At most half of
                              * slot_idle_ns and of client_idle_ns */
};

struct mf_tasks_stats {
    uint64_t packets[MF_OP_END];   /* datagrams with a valid header, by operation */
    uint64_t reasons[MF_V_TASKS_END]; /* [MF_V_OK]: datagrams taken; others: by drop reason */
    uint64_t submitted;            /* tasks acknowledged */
    uint64_t assigned;             /* assignments, including further attempts, without repeats */
    uint64_t completed;            /* tasks reported done by their slot */
    uint64_t expired;              /* tasks whose slot's lease expired (T10) */
    uint64_t returned;             /* tasks requeued because their slot left or registered again */
    uint64_t cancelled;            /* tasks cancelled by their client */
    uint64_t dropped;              /* queued tasks dropped because their client was silent (T14) */
    uint64_t purged;               /* queued tasks purged by the operator */
    uint64_t stops;                /* tasks in STOPs to executors: the client was dropped or purged */
    uint64_t at_place;             /* tasks assigned at their preferred place (T19) */
    uint64_t out_of_patience;      /* tasks whose patience ran out */
    uint64_t gaps;                 /* pauses between ticks of more than a third of a lease, in which the switch received nothing */
    uint64_t wait_us[MF_WAIT_BUCKETS]; /* from acceptance to first assignment */
    uint64_t wait_sum_us;
    uint64_t run_us[MF_WAIT_BUCKETS]; /* from assignment to the report that the task is done, same buckets */
    uint64_t run_sum_us;
    uint32_t queued[MF_LEVELS];    /* tasks queued now, by level (index 0 is level 1) */
    uint32_t parked;
    uint32_t busy;                 /* slots with a task now */
    uint32_t slots;
    uint32_t clients;
    uint32_t for_place;            /* queued tasks that wait for their place now */
    uint32_t places;
    uint32_t argument_blocks;      /* blocks of 128 bytes that appended arguments take now */
    uint32_t reserved;
};

/* Bytes of state; 0 if a bound is violated. */
uint64_t mf_tasks_size(const struct mf_tasks_config *config);

/* `tasks`: zeroed memory of mf_tasks_size() bytes, aligned to 64. `epoch`: random, not 0. `key`: random and secret; cookies, slot
 * generations and the hash salt derive from it. */
void mf_tasks_init(struct mf_tasks *tasks, const struct mf_tasks_config *config, uint32_t epoch, const uint64_t key[2]);

/* Handles one datagram and overwrites `out`. `now_ns` must not decrease. */
MF_ENTRY mf_verdict mf_tasks_packet(struct mf_tasks MF_FAR *tasks, uint64_t now_ns,
                                         const struct mf_datagram MF_FAR *in, struct mf_out MF_FAR *out);

/* Whether `mf_tasks_packet` may send more for this datagram than one idempotent answer of at most `room` bytes to its sender. Changes
 * nothing. XDP can answer a frame with one frame only and leaves such a datagram to TC. */
MF_ENTRY int mf_tasks_owes_more(const struct mf_tasks MF_FAR *tasks, const struct mf_datagram MF_FAR *in, uint32_t room);

/* The lease reaper. Visits the next MF_TICK_SLOTS slots, or fewer if `out` is full, and requeues tasks whose slot's lease has expired
 * (T10). Then visits the next clients and records, and drops the tasks of silent clients (T14). After a pause of more than a third of a
 * lease no lease expires, because the switch received nothing during it. Overwrites `out`. Returns the number of slots visited. */
MF_ENTRY uint32_t mf_tasks_tick(struct mf_tasks MF_FAR *tasks, uint64_t now_ns, struct mf_out MF_FAR *out);

/* The operator's purge: which queued tasks to remove, and its progress. A purge by client or address also stops their running tasks. */
enum mf_purge_by { MF_PURGE_CLIENT, MF_PURGE_RESOURCES, MF_PURGE_ADDRESS };

struct mf_tasks_order {
    uint32_t by;        /* enum mf_purge_by */
    uint32_t resources; /* MF_PURGE_RESOURCES: tasks that need all of these */
    uint64_t client;    /* MF_PURGE_CLIENT: tasks of this identity, network byte order */
    struct mf_address address; /* MF_PURGE_ADDRESS: tasks of clients at this address; for IPv6 only the first 64 bits count */
    uint32_t next;      /* next record to visit; 0 at first */
    uint32_t purged;    /* tasks purged so far; 0 at first */
    uint32_t reserved;
};

/* Visits the next MF_PURGE_RECORDS records and removes the matching tasks. Call until it returns 1. */
MF_ENTRY uint32_t mf_tasks_order(struct mf_tasks MF_FAR *tasks, struct mf_tasks_order MF_FAR *order);

void mf_tasks_stats(const struct mf_tasks *tasks, struct mf_tasks_stats *stats);

/* Survey of each table's used elements. */

struct mf_surveyed_slot {
    uint64_t executor;         /* as in REGISTER */
    uint64_t heard_ns;
    uint64_t assigned_ns;      /* when its task was assigned; undefined without one */
    struct mf_address address;
    uint8_t state;             /* 1 idle, 2 parked, 3 has a task */
    uint8_t resources;
    uint8_t reserved[2];
};

struct mf_surveyed_client {
    uint64_t identity;         /* as in SUBMIT */
    uint64_t heard_ns;
    struct mf_address address;
    uint32_t number;           /* referenced by its tasks */
    uint32_t open;             /* its tasks, queued and assigned */
    uint32_t uid;              /* of its last SUBMIT */
};

struct mf_surveyed_task {
    uint64_t accepted_ns;
    uint32_t client;
    uint32_t jid;
    uint8_t is_held;           /* 1: assigned to a slot, 0: queued */
    uint8_t level;             /* 1 is the highest */
    uint8_t resources;
    uint8_t attempt;           /* attempts started */
    uint32_t reserved;
};

/* Each function copies the used ones of the next MF_SURVEY_STEP elements of a table and returns their number. `*next` is 0 at first, and
 * again after the last element. In the kernel, packets arrive during the copy, so an element may mix two states. */
uint32_t mf_tasks_survey_slots(const struct mf_tasks *tasks, uint32_t *next, struct mf_surveyed_slot *found);
uint32_t mf_tasks_survey_clients(const struct mf_tasks *tasks, uint32_t *next, struct mf_surveyed_client *found);
uint32_t mf_tasks_survey_records(const struct mf_tasks *tasks, uint32_t *next, struct mf_surveyed_task *found);

/* For tests: checks all structures. Returns 0, or the line of the failed check in tasks_check.c. */
int mf_tasks_check(const struct mf_tasks *tasks);

/* For tests: sizes of the structures above and bounds, in the order of tasks_check.c. */
void mf_tasks_layout(uint64_t layout[16]);

#endif
