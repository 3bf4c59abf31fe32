/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The state of an operator, in one region of memory: a structure of constant size, then racks, traffic groups, RSNodes and places, bounded
 * by the configuration, and the tables of select_state.h. Zeroed memory is an operator without rules. The controller fills the tables;
 * packets change only counters and the selection's statistics. Addresses and `marker` are in network byte order, all other numbers in the
 * machine's.
 */
#ifndef MIDFLIGHT_CACHE_STATE_H
#define MIDFLIGHT_CACHE_STATE_H

#include "midflight/cache.h"
#include "select_state.h"
#include "shared/answer.h"
#include "shared/mutant.h"

#define KNOWN_CLIENTS 4096 /* a power of two */
#define PLACES_NEAR 64     /* search distance from the hash of a place */

/* Kind of an address. GONE: removed, but a search continues past it. */
enum place_kind { PLACE_NONE, PLACE_GONE, PLACE_HOST, PLACE_SERVER, PLACE_OPERATOR };

/* A known address; for a host, whatever the port. */
struct place {
    struct mf_address address; /* of a host: port 0 */
    uint16_t rack;
    uint16_t group;            /* of a host */
    uint32_t kind;             /* enum place_kind */
    uint32_t reserved;
};

struct rack {
    struct mf_address address; /* its operator; port 0: no such rack */
    uint32_t marker;           /* network byte order */
};

struct rsnode {
    struct mf_address address; /* port 0: none, or not responding */
    uint32_t is_here;          /* 1: this operator */
};

struct group {
    uint64_t counts[MF_TIERS_MAX];
    uint32_t rsnode; /* RSNode id; MF_NO_RSNODE, MF_ILLEGAL_RSNODE: its requests go to their backups */
    uint32_t reserved;
};

/* A client whose cookie was valid: comparing the next one is cheaper than computing it. */
struct known_client {
    struct mf_address from;
    uint32_t unused;
    uint64_t cookie;
    uint64_t until_ns; /* expiry of the cookie; 0: unused */
};

struct mf_cache {
    uint64_t cookie_key[2];
    uint64_t place_key[2]; /* derived from the cookie key without revealing it: the hash of places is weaker */
    uint64_t cookie_ns;
    uint64_t racks_at;   /* offsets */
    uint64_t groups_at;
    uint64_t rsnodes_at;
    uint64_t places_at;
    uint32_t racks;
    uint32_t groups;
    uint32_t rsnodes;    /* ids 0 to this */
    uint32_t place_mask; /* number of places - 1, a power of two - 1 */
    uint32_t places_max; /* most in use at once */
    uint32_t places;     /* in use */
    uint32_t masks[MF_TIERS_MAX]; /* network byte order */
    uint32_t rack;                /* this operator's; MF_NO_RACK */
    struct mf_address selector;   /* port 0: none */
    struct selection selection;
    struct mf_cache_stats stats;
    struct known_client known[KNOWN_CLIENTS]; /* by a hash of the address */
};

struct call {
    uint64_t now_ns;
    const struct mf_datagram *in;
    struct mf_out *out;
};

MF_INLINE struct rack *rack_at(struct mf_cache *s, uint32_t i)
{
    return (struct rack *)((uint8_t *)s + s->racks_at) + i;
}

MF_INLINE struct group *group_at(struct mf_cache *s, uint32_t i)
{
    return (struct group *)((uint8_t *)s + s->groups_at) + i;
}

MF_INLINE struct rsnode *rsnode_at(struct mf_cache *s, uint32_t id)
{
    return (struct rsnode *)((uint8_t *)s + s->rsnodes_at) + id;
}

MF_INLINE struct place *place_at(struct mf_cache *s, uint32_t i)
{
    return (struct place *)((uint8_t *)s + s->places_at) + i;
}

/* The RSNode of an id, or 0 if there is none or it does not respond. */
MF_INLINE struct rsnode *find_rsnode(struct mf_cache *s, uint32_t id)
{
    if (MF_UNLIKELY(id == MF_NO_RSNODE || id > s->rsnodes))
        return 0;
    struct rsnode *rsnode = rsnode_at(s, id);
    return rsnode->is_here || rsnode->address.port ? rsnode : 0;
}

MF_INLINE struct rack *find_rack(struct mf_cache *s, uint32_t number)
{
    if (MF_UNLIKELY(number >= s->racks))
        return 0;
    struct rack *rack = rack_at(s, number);
    return rack->address.port ? rack : 0;
}

/* A keyed hash of an address: without the key, an attacker cannot choose addresses that collide. */
MF_INLINE uint64_t hash_address(const struct mf_cache *s, const struct mf_address *address, uint32_t port)
{
    const struct address_words *words = (const struct address_words *)address;
    uint64_t odd = s->place_key[1] | 1;
    return mf_mix((words->high ^ s->place_key[0]) * odd + words->low + port * (odd + 2));
}

MF_INLINE int is_place_of(const struct place *place, const struct mf_address *address, uint32_t port)
{
    const struct address_words *a = (const struct address_words *)&place->address;
    const struct address_words *b = (const struct address_words *)address;
    return ((a->high ^ b->high) | (a->low ^ b->low) | (uint64_t)(a->port ^ port)) == 0;
}

/* The place of an address with this port (network byte order), or 0. */
MF_INLINE struct place *find_place(struct mf_cache *s, const struct mf_address *address, uint32_t port)
{
    uint32_t at = (uint32_t)hash_address(s, address, port);
    for (uint32_t i = MF_ZERO; MF_LOOP(i < PLACES_NEAR); i++) {
        struct place *place = place_at(s, (at + i) & s->place_mask);
        if (place->kind == PLACE_NONE)
            return 0;
        if (MF_LIKELY(is_place_of(place, address, port) && place->kind != PLACE_GONE))
            return place;
    }
    return 0;
}

/* The server or operator at an address with its port, or the host with any. */
MF_INLINE struct place *find_sender(struct mf_cache *s, const struct mf_address *address)
{
    struct place *place = find_place(s, address, address->port);
    return place ? place : find_place(s, address, 0);
}

/* The highest tier that packets between two racks pass: 0 is the topmost. Markers are in network byte order. */
MF_INLINE uint32_t tier_of(const struct mf_cache *s, uint32_t one, uint32_t other)
{
    uint32_t tier = 0;
#pragma GCC unroll 4
    for (uint32_t i = 1; i < MF_TIERS_MAX; i++)
        if (s->masks[i] && ((one ^ other) & s->masks[i]) == 0)
            tier = i;
    return tier;
}

#endif
