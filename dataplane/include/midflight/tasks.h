/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The tasks program of the soft engine: the cluster's one task queue, in the shape that switch.h describes.
 * `docs/internals/core.md` explains its structures, `docs/internals/tasks.md` the protocol.
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
#define MF_TICK_WISHES 1024  /* tasks whose patience has run out that one tick moves */
#define MF_TICK_SLOTS 1024   /* slots that one tick visits */
#define MF_TICK_CLIENTS 64   /* clients that one tick visits */
#define MF_TICK_RECORDS 256  /* task records that one tick visits */
#define MF_PURGE_RECORDS 1024 /* task records that one call of a purge visits */
#define MF_WAIT_BUCKETS 40   /* bucket b counts waits of [2^(b-1), 2^b) us; bucket 0 those below 1 us */

struct mf_tasks; /* one queue, complete */

struct mf_tasks_config {
    uint32_t queue;          /* task records, queued and assigned: 1 to MF_QUEUE_MAX */
    uint32_t slots;          /* executor slots: 1 to MF_EXECUTOR_SLOTS_MAX */
    uint32_t clients;        /* 1 to MF_CLIENTS_MAX */
    uint32_t levels;         /* priority levels: 1 to MF_LEVELS */
    uint32_t places;         /* places of slots: 1 to MF_PLACES_MAX */
    uint64_t lease_ns;       /* T10: silence after which an assigned task is queued again; a parked slot
                                is taken out after half of it */
    uint64_t slot_idle_ns;   /* silence after which a slot without a task is forgotten */
    uint64_t client_idle_ns; /* silence after which a client loses its tasks, and without any is forgotten */
    uint64_t cookie_ns;      /* time is divided into intervals of this length; a cookie is valid in the interval that it was
                                made in and in the next. slot_idle_ns and client_idle_ns are at least twice as long */
};

struct mf_tasks_stats {
    uint64_t packets[MF_OP_END];   /* datagrams with a valid header, by operation */
    uint64_t reasons[MF_V_TASKS_END]; /* [MF_V_OK]: datagrams taken; others: by verdict */
    uint64_t submitted;            /* tasks acknowledged */
    uint64_t assigned;             /* assignments, further attempts included, repeats not */
    uint64_t completed;            /* tasks whose slot said that they are done */
    uint64_t expired;              /* tasks whose slot's lease expired (T10) */
    uint64_t returned;             /* tasks queued again because their slot left, or was registered anew */
    uint64_t cancelled;            /* tasks taken out by their client */
    uint64_t dropped;              /* queued tasks given up because their client was silent (T14) */
    uint64_t purged;               /* queued tasks that the operator took out */
    uint64_t stops;                /* tasks in STOPs to their executors: their clients were given up, or purged */
    uint64_t at_place;             /* tasks assigned at the place that they prefer (T19) */
    uint64_t out_of_patience;      /* tasks that have waited for their place in vain */
    uint64_t gaps;                 /* pauses between ticks of more than a third of a lease: the switch could hear nobody */
    uint64_t wait_us[MF_WAIT_BUCKETS]; /* acceptance to first assignment */
    uint64_t wait_sum_us;
    uint64_t run_us[MF_WAIT_BUCKETS]; /* assignment to the word that the task is done, in the same buckets */
    uint64_t run_sum_us;
    uint32_t queued[MF_LEVELS];    /* tasks in the queue now, by level (index 0 is level 1) */
    uint32_t parked;               /* slots waiting now */
    uint32_t busy;                 /* slots with a task now */
    uint32_t slots;                /* slots registered now */
    uint32_t clients;              /* clients known now */
    uint32_t for_place;            /* queued tasks that wait for their place now */
    uint32_t places;               /* places known now */
};

/* Bytes of state for this configuration; 0 where a bound is violated. */
uint64_t mf_tasks_size(const struct mf_tasks_config *config);

/* `tasks`: zeroed memory of mf_tasks_size() bytes, aligned to 64. `epoch`: random, not 0. `key`: random and secret; cookies,
 * slot generations and the salt of hashes are derived from it. */
void mf_tasks_init(struct mf_tasks *tasks, const struct mf_tasks_config *config, uint32_t epoch, const uint64_t key[2]);

/* Takes one datagram. `now_ns` never decreases. Overwrites `out`. Returns the verdict on the datagram. */
MF_ENTRY mf_verdict mf_tasks_packet(struct mf_tasks MF_FAR *tasks, uint64_t now_ns,
                                         const struct mf_datagram MF_FAR *in, struct mf_out MF_FAR *out);

/* Whether `mf_tasks_packet` may owe more for this datagram than one answer to its sender of at most `room` bytes that would be
 * the same if the datagram were brought again. Changes nothing. XDP can answer a frame with one frame only, and leaves such a
 * datagram to TC. */
MF_ENTRY int mf_tasks_owes_more(const struct mf_tasks MF_FAR *tasks, const struct mf_datagram MF_FAR *in, uint32_t room);

/* The lease reaper. Visits the next MF_TICK_SLOTS slots, or fewer where `out` is full, and takes the tasks of those whose lease
 * has expired (T10); then the next clients and records, and drops what silent clients have left (T14). After a pause of more
 * than a third of a lease between ticks nothing expires for a lease, because the switch could hear nobody. Overwrites `out`.
 * Returns the number of slots visited. */
MF_ENTRY uint32_t mf_tasks_tick(struct mf_tasks MF_FAR *tasks, uint64_t now_ns, struct mf_out MF_FAR *out);

/* The operator's order, a purge: which queued tasks to take out, and how far it has come. By client or address, what these have
 * running is to stop. */
enum mf_purge_by { MF_PURGE_CLIENT, MF_PURGE_RESOURCES, MF_PURGE_ADDRESS };

struct mf_tasks_order {
    uint32_t by;        /* enum mf_purge_by */
    uint32_t resources; /* MF_PURGE_RESOURCES: tasks that need all of these */
    uint64_t client;    /* MF_PURGE_CLIENT: tasks of this identity, network byte order */
    struct mf_address address; /* MF_PURGE_ADDRESS: tasks of clients there; of IPv6 only the first 64 bits count */
    uint32_t next;      /* the next record to visit; 0 at first */
    uint32_t purged;    /* tasks taken out so far; 0 at first */
    uint32_t reserved;
};

/* Visits the next MF_PURGE_RECORDS records and takes those tasks out. Call it until it returns 1. */
MF_ENTRY uint32_t mf_tasks_order(struct mf_tasks MF_FAR *tasks, struct mf_tasks_order MF_FAR *order);

void mf_tasks_stats(const struct mf_tasks *tasks, struct mf_tasks_stats *stats);

/* A survey, for people who watch: what each table has in use. */

struct mf_surveyed_slot {
    uint64_t executor;         /* as in REGISTER */
    uint64_t heard_ns;         /* when it was last heard */
    uint64_t assigned_ns;      /* since when it has its task; else of no meaning */
    struct mf_address address;
    uint8_t state;             /* 1 has neither task nor wait, 2 parked, 3 has a task */
    uint8_t resources;
    uint8_t reserved[2];
};

struct mf_surveyed_client {
    uint64_t identity;         /* as in SUBMIT */
    uint64_t heard_ns;
    struct mf_address address;
    uint32_t number;           /* by which its tasks name it */
    uint32_t open;             /* its tasks, queued and assigned */
    uint32_t uid;              /* of its last SUBMIT */
};

struct mf_surveyed_task {
    uint64_t accepted_ns;
    uint32_t client;           /* number */
    uint32_t jid;
    uint8_t is_held;           /* 1: a slot has it, 0: it is queued */
    uint8_t level;             /* 1 is the highest */
    uint8_t resources;
    uint8_t attempt;           /* attempts that have begun */
    uint32_t reserved;
};

/* Each copies what is in use among the next MF_SURVEY_STEP elements of a table, and returns how many that are. `*next` is 0 at
 * first, and again when all were visited. Where the program runs meanwhile, in the kernel, an element may be a mix of two moments. */
uint32_t mf_tasks_survey_slots(const struct mf_tasks *tasks, uint32_t *next, struct mf_surveyed_slot *found);
uint32_t mf_tasks_survey_clients(const struct mf_tasks *tasks, uint32_t *next, struct mf_surveyed_client *found);
uint32_t mf_tasks_survey_records(const struct mf_tasks *tasks, uint32_t *next, struct mf_surveyed_task *found);

/* For tests: checks all structures. 0: sound; else the line of the check in tasks_check.c that failed. */
int mf_tasks_check(const struct mf_tasks *tasks);

/* For tests: sizes of the structures above, and bounds, in the order of tasks_check.c. */
void mf_tasks_layout(uint64_t layout[16]);

#endif
