/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The state of an operator that selects itself: servers with their statistics, replica groups, and requests in flight. Four tables, bounded
 * by the configuration; absent if it does not select.
 */
#ifndef MIDFLIGHT_CACHE_SELECT_STATE_H
#define MIDFLIGHT_CACHE_SELECT_STATE_H

#include "midflight/cache.h"
#include "select_number.h"

#define NO_SLOT (~0u)
#define FOUND_NEAR 64 /* search distance from the hash of a replica group or server */

struct chosen_server {
    struct mf_address address;
    uint32_t outstanding;    /* requests neither answered nor expired */
    uint64_t known_until_ns; /* validity of the statistics; 0: it never answered */
    uint64_t status_at_ns;   /* when the last status was believed */
    uint16_t sequence;       /* of that status */
    uint16_t has_status;
    uint32_t reserved;
    number response; /* averages of C3, times in nanoseconds */
    number service;  /* 0: none was ever reported */
    number queue;
    uint64_t score;  /* C3's score, cached until an input changes; 0: not computed */
};

struct replica_group {
    uint32_t id;
    uint32_t count; /* number of servers; 0: unused entry */
    uint16_t server[MF_CANDIDATES_MAX]; /* numbers, ascending */
};

/* A request in flight, or a free slot. Free slots form a queue; the others a list by age. */
struct under_way {
    struct mf_address client; /* all bytes as in the request */
    uint32_t server;
    uint64_t request; /* network byte order */
    uint64_t sent_ns;
    uint16_t retained; /* RV, as assigned last */
    uint16_t is_used;
    uint32_t before; /* slot of the next older request; NO_SLOT */
    uint32_t after;  /* slot of the next newer one, or the next free slot */
    uint32_t reserved;
};

struct selection {
    uint32_t kind;        /* enum mf_selection */
    uint32_t selectors;   /* number of selectors that share the same servers */
    uint64_t random;      /* state of the random number generator */
    uint64_t expire_ns;
    uint64_t servers_at;  /* offsets from the start of the operator's state */
    uint64_t index_at;    /* of servers: number + 1, or 0 */
    uint64_t groups_at;
    uint64_t slots_at;
    uint32_t servers_max;
    uint32_t servers;     /* known servers: numbers 0 to one below this */
    uint32_t index_mask;
    uint32_t groups_mask;
    uint32_t groups_max;
    uint32_t groups;
    uint32_t slots;       /* a power of two */
    uint32_t slot_bits;
    uint32_t free;        /* the slot free for longest */
    uint32_t free_last;
    uint32_t oldest;
    uint32_t newest;
};

#endif
