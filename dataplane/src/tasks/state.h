/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The state of one queue, in one region of memory: a struct of constant size, then arrays whose lengths the configuration sets. Elements
 * refer to each other by number, not by pointer; 0 means "none" everywhere. So zeroed memory is an empty queue, and unused pages are never
 * touched.
 */
#ifndef MIDFLIGHT_STATE_H
#define MIDFLIGHT_STATE_H

#include "shared/bytes.h"
#include "midflight/tasks.h"
#include "shared/mutant.h"

#define NONE 0u
#define NO_TASK (INT64_MAX & ~0xffull) /* a rank of queue.h not below it means "no task" */
#define MASKS 256        /* resource masks */
#define MASK_WORDS 4     /* 64-bit words in a bitmap of masks */
#define SIZES 9          /* a mask has 0 to 8 resources */
#define GROUP 8          /* masks that differ only in their low three bits */
#define GROUPS 32        /* groups of masks */
#define LINE 64          /* bytes of a cache line */
#define CHAIN_MAX 64     /* links of a hash chain that a look-up follows */
#define KEY_SHIFT 3      /* a key counts 8 ns: 55 bits last 9 years */
#define PATIENCES 16     /* classes of patience: 1 ms, 2 ms, 4 ms, ... MF_PATIENCE_MAX */
#define BLOCK_BYTES 120  /* bytes of an argument in one block */
#define RECORDS_A_PAGE 64 /* never-used records that a level takes at once */

/* STOPPING: assigned, and cancelled by its client. If its slot loses it, the record is freed instead of requeued. */
enum record_state { RECORD_FREE, RECORD_QUEUED, RECORD_ASSIGNED, RECORD_STOPPING };

/* Links of an element in its hash chain (index.h). */
struct link {
    uint32_t next, back;
};

/* A task. It fills one cache line, including its links in the index. */
struct record {
    uint64_t stamp;      /* from the highest bit: 0, 55 bits of key, 5 of index, 1 of tried, 2 of state; see below */
    uint32_t next; /* in the list of its level and mask, or in the free list */
    union {
        uint32_t prev; /* QUEUED: in the same list */
        uint32_t slot; /* ASSIGNED, STOPPING: its slot, in network byte order as in the wait */
    };
    struct link link;
    uint32_t client;
    uint32_t submission; /* sequence of its SUBMIT, network byte order */
    struct mf_task_info info; /* as submitted, but `attempt` counts the attempts begun */
    uint32_t jid;        /* network byte order: the switch only copies it */
};

/* Part of an appended argument. */
struct block {
    uint32_t next; /* of the same argument, or in the list of free blocks */
    uint32_t reserved;
    uint8_t bytes[BLOCK_BYTES];
};

/* What a record has in place of its argument. On the wire `first` is reserved. */
struct MF_WIRE appended {
    uint16_t length; /* network byte order */
    uint16_t reserved;
    uint32_t first; /* its first block */
    uint32_t reserved_too[2];
};

#define STATE_BITS 3ull
#define TRIED 4ull
#define INDEX_SHIFT 3
#define STAMP_SHIFT 8

/* Acceptance time in units of 8 ns, made strictly increasing: the order of T3. */
MF_INLINE uint64_t key_of(const struct record *r)
{
    return r->stamp >> STAMP_SHIFT;
}

/* The task's position in its SUBMIT. */
MF_INLINE uint32_t index_in(uint64_t stamp)
{
    return (stamp >> INDEX_SHIFT) & (MF_SUBMIT_MAX - 1);
}

MF_INLINE uint32_t index_of(const struct record *r)
{
    return index_in(r->stamp);
}

MF_INLINE enum record_state state_of(const struct record *r)
{
    return (enum record_state)(r->stamp & STATE_BITS);
}

MF_INLINE void set_state(struct record *r, enum record_state state)
{
    r->stamp = (r->stamp & ~STATE_BITS) | state;
}

MF_INLINE int is_held(const struct record *r)
{
    return state_of(r) >= RECORD_ASSIGNED;
}

/* Whether this switch has assigned the task before. */
MF_INLINE int was_tried(const struct record *r)
{
    return (r->stamp & TRIED) != 0;
}

enum slot_state { SLOT_VACANT, SLOT_FREE, SLOT_WAITING, SLOT_ASSIGNED };

/* An executor slot: the fields for RETRIEVE, in one cache line. */
struct slot {
    uint64_t heard_ns;
    uint64_t counter; /* largest of the packets that named this slot in this generation */
    union {
        uint64_t parked_key; /* WAITING: order of parking */
        struct {
            uint32_t record;    /* ASSIGNED: its task */
            uint32_t waited_us; /* as in ASSIGN, for repeats */
        };
    };
    uint32_t generation;
    uint32_t sequence;   /* of its last wait */
    union {
        uint64_t assigned_ns; /* ASSIGNED: since when */
        struct {
            uint32_t next, prev; /* in the parked list of its mask; `next` in the list of vacant slots */
        };
    };
    struct mf_address address;
    uint8_t state;       /* enum slot_state */
    uint8_t resources;
    uint8_t spent;       /* 1: the last wait is void, because its lease has expired or the slot was registered again; only a larger
                          * sequence may wait (T10) */
    uint8_t is_placed;   /* 1: it has a place, see its seats */
};

/* A slot's seat at a place: slot i has the seats 2 i and 2 i + 1. */
struct seat {
    uint32_t place;      /* NONE: unused */
    uint32_t next, prev; /* WAITING: in the place's parked list of its mask; seats */
    uint32_t reserved;
};

/* The fields that only REGISTER touches. */
struct slot_owner {
    uint64_t executor;
    uint32_t local;
    uint32_t registration; /* sequence of the REGISTER that set the generation */
    uint32_t source;       /* the source whose share it counts for */
    uint32_t reserved;
    struct link link;
};

/* A client. The first cache line has all that its tasks need. */
struct client {
    uint64_t identity;
    uint64_t seen;     /* bit k: sequence highest - k was seen */
    uint32_t highest;  /* sequence */
    uint32_t open;     /* its records */
    uint32_t source;   /* the source whose share it counts for */
    uint32_t uid;      /* of its last SUBMIT, network byte order */
    struct link link;  /* `next` also in the list of free clients */
    struct mf_address address;
    uint32_t known;    /* 0: this element is free */

    uint64_t heard_ns;
    uint64_t unwanted; /* key: tasks accepted up to it are no longer wanted */
    uint32_t probed;   /* sequence of its last PROBE */
    uint32_t blocks;   /* of its tasks' arguments */
    uint32_t reserved[10];

    uint32_t answer[MF_WINDOW]; /* bitmaps sent for its last sequences, at sequence % MF_WINDOW, for repeats (T8) */
};

/* A sender address with records here, and the elements of each table that it holds (T14). */
struct source {
    uint64_t key; /* see index.h */
    uint32_t clients, slots, tasks, blocks;
    struct link link; /* `next` also in the list of free sources */
};

struct list {
    uint32_t head, tail;
};

/* Parked slots, in one FIFO list per mask. */
struct parking {
    uint64_t masks[MASK_WORDS]; /* bitmap of the masks whose lists are not empty */
    struct list lists[MASKS];
};

/* A place: its slots, and the tasks that wait for them (T19). Freed when it has neither. */
struct place {
    uint32_t name;   /* network byte order */
    uint32_t slots;  /* registered slots */
    uint32_t tasks;  /* tasks that wait for it */
    uint32_t levels; /* bit l: tasks of level l wait for it */
    struct link link; /* `next` also in the list of free places */
    struct list waiting[MF_LEVELS]; /* tasks, linked like those of a queue */
    struct parking parked;          /* seats */
};

/* Additional fields of a task that waits for its place. */
struct wish {
    uint64_t gave_up;    /* key of the last task out of patience here, which is between younger ones (mf_tasks_check) */
    uint32_t place;      /* NONE: the record waits for no place */
    uint32_t patience;   /* its class */
    uint32_t next, prev; /* tasks of the same class, in the order of acceptance */
};

struct queue {
    uint64_t second; /* rank of the second task; see queue.h */
    uint32_t head, tail;
};

/* Allocation in one array: elements from `fresh` on were never used, freed ones are in the list `free`. */
struct pool {
    uint32_t capacity, fresh, free, used;
};

/* Allocation of one level's records. A level first reuses the records that it has freed, then takes never-used ones by the page. So the
 * tasks of a level with a long queue are nearly in order in memory, and the processor prefetches them. (With one pool for all levels a
 * retrieve among 64 Ki tasks took 11 ns more in the kernel.) */
struct level_pool {
    uint32_t free;       /* list of freed records */
    uint32_t fresh, end; /* never-used records: the next one, and their end */
    uint32_t reserved;
};

/* A BPF load or store reaches fields up to 32 KiB from an address; farther ones cost an addition. So arrays come last, the largest one at
 * the end. */
struct mf_tasks {
    uint8_t none[LINE]; /* record 0 and client 0: read in place of a missing record or client, which saves branches */
    uint32_t epoch;
    uint32_t levels;
    uint64_t cookie_key[2], generation_key[2];
    uint64_t salt;        /* of the hash tables; independent of the keys, so that guessing it does not reveal them */
    uint64_t lease_ns, slot_idle_ns, client_idle_ns, cookie_ns;
    uint64_t last_key;    /* of the record accepted last */
    uint64_t last_parked; /* of the slot parked last */
    uint64_t generations; /* number drawn so far */
    uint64_t ticked_ns;
    uint64_t expires_ns;  /* nothing expires before this time */
    uint32_t slot_cursor;
    uint32_t client_cursor, record_cursor; /* next to visit in a tick, counted from the first */
    uint32_t task_buckets, client_buckets, slot_buckets, source_buckets, place_buckets; /* powers of two, less one: masks */
    uint32_t levels_used; /* bit l: level l has tasks */
    uint32_t first_client;
    uint32_t queue;
    uint32_t room;          /* free records */
    uint32_t fresh_records; /* never-used records that the levels have taken */
    struct level_pool records[MF_LEVELS];
    struct pool slots, clients, sources, places, blocks;

    /* Offsets of the arrays from the start of this struct; the records follow it directly. */
    uint64_t task_buckets_at;
    uint64_t slots_at, slot_owners_at, slot_buckets_at;
    uint64_t client_buckets_at;
    uint64_t sources_at, source_buckets_at;
    uint64_t tokens_at; /* in the records' order */
    uint64_t places_at, place_buckets_at, seats_at;
    uint64_t wishes_at; /* in the records' order */
    uint64_t blocks_at;
    struct list patience[PATIENCES]; /* tasks that wait for places, by class */

    struct mf_tasks_stats stats;

    uint8_t lowest[256];              /* number of the index's lowest set bit */
    uint8_t bits[256];                /* number of bits that the index needs: 1 + its highest set bit */
    uint8_t subsets[GROUP];           /* bitmap of the three-bit masks contained in the index */
    uint32_t groups_within[GROUPS];   /* bitmap of the five-bit masks contained in the index */
    uint64_t supersets[64]; /* bitmap of the six-bit masks that contain the index */
    uint64_t sized[SIZES][MASK_WORDS]; /* bitmap of the masks with `index` resources */
    struct parking parked;

    uint32_t queued_groups[MF_LEVELS];         /* bit g: group g of this level has tasks */
    uint8_t queued_masks[MF_LEVELS * GROUPS];  /* bit m: list m of this group has tasks */
    uint64_t oldest[MF_LEVELS * GROUPS];       /* rank of each group's oldest head; see queue.h */
    uint64_t pairs[MF_LEVELS * MASKS / 2];     /* rank of the older head of two neighbouring lists */
    uint64_t heads[MF_LEVELS * MASKS];         /* rank of each list's head */
    struct queue queued[MF_LEVELS * MASKS];
};

_Static_assert(offsetof(struct mf_tasks, queued) < 32768, "within reach of a load in BPF");

/* A record's or client's number is its cache line, counted from the start of the state. */
#define FIRST_RECORD ((uint32_t)((sizeof(struct mf_tasks) + LINE - 1) / LINE))
#define CLIENT_LINES ((uint32_t)(sizeof(struct client) / LINE))

MF_INLINE struct record *record_at(struct mf_tasks *s, uint32_t i)
{
    return (struct record *)((uint8_t *)s + (uint64_t)i * LINE);
}

MF_INLINE struct client *client_at(struct mf_tasks *s, uint32_t i)
{
    return (struct client *)((uint8_t *)s + (uint64_t)i * LINE);
}

#define MF_ARRAY(name, type, offset)                                                               \
    MF_INLINE type *name(struct mf_tasks *s, uint32_t i)                                           \
    {                                                                                              \
        return (type *)((uint8_t *)s + s->offset) + i;                                             \
    }

MF_ARRAY(task_bucket_at, uint32_t, task_buckets_at)
MF_ARRAY(slot_at, struct slot, slots_at)
MF_ARRAY(slot_owner_at, struct slot_owner, slot_owners_at)
MF_ARRAY(slot_bucket_at, uint32_t, slot_buckets_at)
MF_ARRAY(client_bucket_at, uint32_t, client_buckets_at)
MF_ARRAY(source_at, struct source, sources_at)
MF_ARRAY(source_bucket_at, uint32_t, source_buckets_at)
MF_ARRAY(place_at, struct place, places_at)
MF_ARRAY(place_bucket_at, uint32_t, place_buckets_at)
MF_ARRAY(seat_at, struct seat, seats_at)
MF_ARRAY(block_at, struct block, blocks_at)

/* The token of a record's SUBMIT, in network byte order. In a separate array, because the record fills its cache line. */
MF_INLINE uint64_t *token_at(struct mf_tasks *s, uint32_t i)
{
    return (uint64_t *)((uint8_t *)s + s->tokens_at) + i - FIRST_RECORD;
}

MF_INLINE struct wish *wish_at(struct mf_tasks *s, uint32_t i)
{
    return (struct wish *)((uint8_t *)s + s->wishes_at) + (i - FIRST_RECORD);
}

/* The address of element `i` of an array in the state. In BPF the array's offset must be part of the load or store itself; otherwise the
 * compiler precomputes the sums with `s` for all arrays and spills them to the stack. */
#ifdef __bpf__
#define MF_AT(s, array, i)                                                                                             \
    ({                                                                                                                 \
        __typeof__(s) at_ = (__typeof__(s))((uint64_t)(s) + (uint64_t)(i) * sizeof((s)->array[0]));                    \
        __asm__("" : "+r"(at_));                                                                                       \
        &at_->array[0];                                                                                                \
    })
#else
#define MF_AT(s, array, i) (&(s)->array[i])
#endif

/* The number of the lowest set bit in a byte; 8 if none is set. */
MF_INLINE uint32_t lowest_of_byte(const struct mf_tasks *s, uint32_t byte)
{
#ifdef __bpf__
    return *MF_AT(s, lowest, byte);
#else
    (void)s;
    return mf_lowest_bit(byte | 256);
#endif
}

/* Bitmap of the masks that contain `mask`, among those whose two high bits are `word`. */
MF_INLINE uint64_t masks_around(const struct mf_tasks *s, uint32_t mask, uint32_t word)
{
    return ((mask >> 6) & ~word) ? 0 : s->supersets[mask & 63];
}

/* Whether a task is no longer wanted, because its client was dropped or purged. */
MF_INLINE int is_unwanted(struct mf_tasks *s, const struct record *r)
{
    return key_of(r) <= client_at(s, r->client)->unwanted;
}

MF_INLINE uint64_t silence(uint64_t heard_ns, uint64_t now_ns)
{
    return now_ns > heard_ns ? now_ns - heard_ns : 0;
}

MF_INLINE void count(struct mf_tasks *s, mf_verdict reason)
{
    ++*MF_AT(s, stats.reasons, reason);
}

#endif
