/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The state of one queue: a head of constant size, then seven arrays whose lengths the configuration sets, in
 * one region of memory. Elements are named by their index; index 0 means "none" everywhere, so zeroed memory
 * is an empty queue, and pages that were never used are never touched.
 */
#ifndef MIDFLIGHT_STATE_H
#define MIDFLIGHT_STATE_H

#include "bytes.h"
#include "midflight/tasks.h"

#define NONE 0u
#define NO_TASK (~0ull)   /* among the ranks of queue.h */
#define MASKS 256        /* resource masks */
#define MASK_WORDS 4     /* 64-bit words in a bitmap of masks */
#define SIZES 9          /* a mask has 0 to 8 resources */
#define GROUP 8          /* masks that differ only in their low three bits */
#define GROUPS 32        /* groups of masks */
#define CHAIN_MAX 64     /* links of a hash chain that a look-up follows */
#define KEY_SHIFT 3      /* a key counts 8 ns: 56 bits of them last 18 years */
#define EVICT_LOOK 64    /* clients that are looked at to evict one */

enum record_state { RECORD_FREE, RECORD_QUEUED, RECORD_ASSIGNED };

/* A place in a hash chain (index.h). */
struct link {
    uint32_t next, back;
};

/* A task: all of it in one cache line, its place in the index too. */
struct record {
    uint64_t stamp;      /* from the top: 56 bits of key, 5 of index, 1 of tried, 2 of state; see below */
    uint32_t next, prev; /* in the list of its level and mask; `next` in the list of free records */
    struct link link;
    uint32_t client;
    uint32_t submission; /* sequence of its SUBMIT, network byte order */
    struct mf_task_info info; /* as it came; `attempt` counts attempts begun */
    uint32_t jid;        /* network byte order: the switch only hands it on */
};

#define STATE_BITS 3ull
#define TRIED 4ull
#define INDEX_SHIFT 3
#define STAMP_SHIFT 8

/* Acceptance time in units of 8 ns, made strictly increasing: the order of T3. */
MF_INLINE uint64_t key_of(const struct record MF_FAR *r)
{
    return r->stamp >> STAMP_SHIFT;
}

/* The task's place in its SUBMIT. */
MF_INLINE uint32_t index_of(const struct record MF_FAR *r)
{
    return (r->stamp >> INDEX_SHIFT) & (MF_SUBMIT_MAX - 1);
}

MF_INLINE enum record_state state_of(const struct record MF_FAR *r)
{
    return (enum record_state)(r->stamp & STATE_BITS);
}

MF_INLINE void set_state(struct record MF_FAR *r, enum record_state state)
{
    r->stamp = (r->stamp & ~STATE_BITS) | state;
}

/* Whether this switch has assigned it before. */
MF_INLINE int was_tried(const struct record MF_FAR *r)
{
    return (r->stamp & TRIED) != 0;
}

enum slot_state { SLOT_VACANT, SLOT_FREE, SLOT_WAITING, SLOT_ASSIGNED };

/* An executor slot: what a RETRIEVE touches, in one cache line. */
struct slot {
    uint64_t heard_ns;
    uint64_t parked_key; /* order of parking */
    uint32_t generation;
    uint32_t sequence;   /* of its last wait */
    uint32_t record;     /* the task it holds, or NONE */
    uint32_t next, prev; /* in the list of parked slots of its mask; `next` in the list of vacant slots */
    struct mf_address address;
    uint8_t state;       /* enum slot_state */
    uint8_t resources;
    uint8_t spent;       /* 1: only a larger sequence may wait (T10) */
    uint8_t reserved;
    uint32_t waited_us;  /* of the assignment, as it was told */
};

/* What only REGISTER touches. */
struct slot_owner {
    uint64_t executor;
    uint32_t local;
    uint32_t registration; /* sequence of the REGISTER that gave the generation */
    struct link link;
};

struct client {
    uint64_t identity;
    uint64_t heard_ns;
    uint64_t seen;     /* bit k: sequence highest - k was seen */
    uint32_t highest;  /* sequence */
    uint32_t open;     /* its records */
    struct mf_address address;
    uint32_t uid;      /* of its last SUBMIT, network byte order */
    struct link link;  /* `next` also in the list of free clients */
};

/* The answers of a client's last MF_WINDOW sequences, by sequence % MF_WINDOW. */
struct window {
    uint32_t answer[MF_WINDOW];
};

struct list {
    uint32_t head, tail;
};

/* Elements of one array that are in use: never-used ones follow `fresh`, given-back ones hang on `free`. */
struct pool {
    uint32_t capacity, fresh, free, used;
};

struct mf_tasks {
    uint32_t epoch; /* network byte order */
    uint32_t levels;
    uint64_t secret;
    uint64_t lease_ns, slot_idle_ns, client_idle_ns;
    uint64_t last_key;    /* of the record accepted last */
    uint64_t last_parked; /* of the slot parked last */
    uint64_t generations; /* drawn so far */
    uint32_t tick_cursor, evict_cursor;
    uint32_t task_buckets, client_buckets, slot_buckets; /* powers of two, less one */
    uint32_t levels_used; /* bit l: level l has tasks */
    struct pool records, slots, clients;

    /* Offsets of the arrays from the start of this struct; the records follow it directly. */
    uint64_t task_buckets_at;
    uint64_t slots_at, slot_owners_at, slot_buckets_at;
    uint64_t clients_at, windows_at, client_buckets_at;

    uint8_t subsets[GROUP];           /* bitmap of the three-bit masks contained in the index */
    uint32_t groups_within[GROUPS];   /* bitmap of the five-bit masks contained in the index */
    uint64_t supersets[64]; /* bitmap of the six-bit masks that contain the index */
    uint64_t sized[SIZES][MASK_WORDS]; /* bitmap of the masks with so many resources */

    uint8_t queued_masks[MF_LEVELS][GROUPS]; /* bit m of byte g: list 8g + m is not empty */
    uint32_t queued_groups[MF_LEVELS];       /* bit g: byte g above is not 0 */
    uint64_t heads[MF_LEVELS][MASKS];        /* of each list; see queue.h */
    uint64_t seconds[MF_LEVELS][MASKS];      /* of the tasks behind them */
    struct list queued[MF_LEVELS][MASKS];
    uint64_t parked_masks[MASK_WORDS];
    struct list parked[MASKS];

    struct mf_tasks_stats stats;
};

#define RECORDS_AT ((sizeof(struct mf_tasks) + 63) & ~63ull)

MF_INLINE struct record MF_FAR *record_at(struct mf_tasks MF_FAR *s, uint32_t i)
{
    return (struct record MF_FAR *)((uint8_t MF_FAR *)s + RECORDS_AT) + i;
}

#define MF_ARRAY(name, type, offset)                                                               \
    MF_INLINE type MF_FAR *name(struct mf_tasks MF_FAR *s, uint32_t i)                                           \
    {                                                                                              \
        return (type MF_FAR *)((uint8_t MF_FAR *)s + s->offset) + i;                                             \
    }

MF_ARRAY(task_bucket_at, uint32_t, task_buckets_at)
MF_ARRAY(slot_at, struct slot, slots_at)
MF_ARRAY(slot_owner_at, struct slot_owner, slot_owners_at)
MF_ARRAY(slot_bucket_at, uint32_t, slot_buckets_at)
MF_ARRAY(client_at, struct client, clients_at)
MF_ARRAY(window_at, struct window, windows_at)
MF_ARRAY(client_bucket_at, uint32_t, client_buckets_at)

/* Masks that contain `mask`, of those whose high two bits are `word`. */
MF_INLINE uint64_t masks_around(const struct mf_tasks MF_FAR *s, uint32_t mask, uint32_t word)
{
    return ((mask >> 6) & ~word) ? 0 : s->supersets[mask & 63];
}

MF_INLINE void count(struct mf_tasks MF_FAR *s, enum mf_verdict reason)
{
    s->stats.reasons[reason]++;
}

#endif
