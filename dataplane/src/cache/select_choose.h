/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The selection algorithms: random, least outstanding, power of two choices, C3. They equal those of `crates/cache/src/select`, with the
 * same use of the same random bits.
 */
#ifndef MIDFLIGHT_CACHE_SELECT_CHOOSE_H
#define MIDFLIGHT_CACHE_SELECT_CHOOSE_H

#include "select_score.h"

#define TIE_BITS 23u /* every tie-break uses other bits */

/* 64 random bits (splitmix64). */
MF_INLINE uint64_t next_random(struct mf_cache *s)
{
    s->selection.random += 0x9e3779b97f4a7c15ull;
    return mf_mix(s->selection.random);
}

/* A number below `count`, by the highest bits of a product. */
MF_INLINE uint32_t below(uint64_t random, uint32_t count)
{
    return (uint32_t)(((random & 0xffffffff) * count) >> 32);
}

/* The server with the least score; ties are broken uniformly. */
MF_INLINE uint32_t least(struct mf_cache *s, const struct replica_group *group, uint64_t now_ns, uint64_t random)
{
    uint32_t best = 0, ties = 0;
    uint64_t lowest = ~0ull;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < group->count); i++) {
        uint32_t server = group->server[i];
        uint64_t score = score_of(s, server_at(s, server), now_ns);
        ties = score < lowest ? 1 : ties + (score == lowest);
        /* The k-th of equals replaces the choice with probability 1/k, which makes all equally probable. */
        if (score < lowest || (score == lowest && below(random, ties) == ties - 1))
            best = server;
        lowest = score < lowest ? score : lowest;
        random = random << TIE_BITS | random >> (64 - TIE_BITS);
    }
    return best;
}

MF_INLINE uint32_t of_two(struct mf_cache *s, const struct replica_group *group, uint64_t random)
{
    uint32_t first = below(random, group->count);
    if (group->count == 1)
        return group->server[0];
    uint32_t second = below(random >> 32, group->count - 1);
    second += second >= first;
    uint32_t a = group->server[first], b = group->server[second];
    return server_at(s, b)->outstanding < server_at(s, a)->outstanding ? b : a;
}

MF_RARE uint32_t choose(struct mf_cache *s MF_IN_ARENA, const struct replica_group *group MF_IN_ARENA, uint64_t now_ns)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(group);
    uint64_t random = next_random(s);
    switch (s->selection.kind) {
    case MF_SELECT_RANDOM:
        return group->server[below(random, group->count)];
    case MF_SELECT_POWER_OF_TWO:
        return of_two(s, group, random);
    default:
        return least(s, group, now_ns, random);
    }
}

#endif
