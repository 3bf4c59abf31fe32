/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The state of an operator that chooses servers itself: servers with what is known of them, replica groups, and requests under way. Four
 * tables, for as many as the configuration admits; there are none if it does not choose.
 */
#ifndef MIDFLIGHT_REPLICAS_SELECT_STATE_H
#define MIDFLIGHT_REPLICAS_SELECT_STATE_H

#include "midflight/replicas.h"
#include "select_number.h"

#define NO_SLOT (~0u)
#define FOUND_NEAR 64 /* a replica group, and a server, is found within so many places of its hash */

/* What the selector keeps of a server. */
struct chosen_server {
    struct mf_address address;
    uint32_t outstanding;    /* requests that were neither answered nor have expired */
    uint64_t known_until_ns; /* what was learned counts until then; 0: it never answered */
    uint64_t status_at_ns;   /* when the last status was believed */
    uint16_t sequence;       /* of that status */
    uint16_t has_status;     /* 1: there was one */
    uint32_t reserved;
    number response; /* averages of C3, times in nanoseconds */
    number service;  /* 0: none was ever reported */
    number queue;
    uint64_t score;  /* of C3, until something of which it is made changes; 0: it is to be computed */
};

/* Which servers have a key. */
struct replica_group {
    uint32_t id;
    uint32_t count; /* of its servers; 0: nothing is here */
    uint16_t server[MF_CANDIDATES_MAX]; /* numbers, in rising order */
};

/* A request under way, or a slot for one. Free slots form a queue; the others a list by age. */
struct under_way {
    struct mf_address client; /* as the request has it, all bytes */
    uint32_t server;
    uint64_t request; /* network byte order */
    uint64_t sent_ns;
    uint16_t retained; /* RV, as it was given out last */
    uint16_t is_used;
    uint32_t before; /* the slot of the next older request; NO_SLOT */
    uint32_t after;  /* the slot of the next newer one, or the next free slot */
    uint32_t reserved;
};

struct selection {
    uint32_t kind;        /* enum mf_selection */
    uint32_t selectors;   /* how many choose among the same servers */
    uint64_t random;      /* the state of the generator */
    uint64_t expire_ns;
    uint64_t servers_at;  /* offsets from the start of the operator's state */
    uint64_t index_at;    /* of servers: a number more by one, or 0 */
    uint64_t groups_at;
    uint64_t slots_at;
    uint32_t servers_max;
    uint32_t servers;     /* that are known: numbers 0 to one below this */
    uint32_t index_mask;
    uint32_t groups_mask;
    uint32_t groups_max;
    uint32_t groups;      /* that are known */
    uint32_t slots;       /* a power of two */
    uint32_t slot_bits;
    uint32_t free;        /* the slot that was free the longest */
    uint32_t free_last;
    uint32_t oldest;
    uint32_t newest;
};

#endif
