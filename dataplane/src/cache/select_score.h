/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * A server's score: outstanding requests, or C3's score, which is cached until an input changes. Of the three or so servers of a group,
 * usually one or two have changed since the last look.
 */
#ifndef MIDFLIGHT_CACHE_SELECT_SCORE_H
#define MIDFLIGHT_CACHE_SELECT_SCORE_H

#include "select_servers.h"

/* Scores compare as integers. 0: a server to be tried. Below SCORE_LARGE: multiples of 2^-SCORE_FRACTION ns. With that bit: numbers of at
 * least as many multiples, which are in order too. From SCORE_UNKNOWN on: outstanding requests of servers that have not answered. */
#define SCORE_FRACTION 10
#define SCORE_LARGE (1ull << 59) /* 6.5 days */
#define SCORE_UNKNOWN (1ull << 63)

/* A time in multiples of 2^-SCORE_FRACTION ns. Times are below 2^37 ns, so results are below 2^47. */
MF_INLINE uint64_t parts_of(number time)
{
    int32_t shift = (int32_t)exponent_of(time) - (int32_t)NUMBER_BIAS + SCORE_FRACTION;
    return shift >= 0 ? mantissa_of(time) << shift : mantissa_of(time) >> (-shift & 63);
}

/* The sum of a time in such multiples and of a product in units of 2^-shift of them; both are above 0. */
MF_RARE uint64_t large_score(uint64_t response, uint64_t product, int64_t shift)
{
    return SCORE_LARGE | plus(number_of(response), number_of(product) - ((uint64_t)shift << NUMBER_BITS));
}

/* Ψ = R̄ + (q̂³ − 1)·s̄, with q̂ = 1 + outstanding·n + q̄, without normalising intermediate numbers. With q̂ = m·2^e the cube has 64 bits,
 * in units of 2^(3e + 32), and 1 is a bit of it. The error is less than two multiples, and 2^-27 of the score and of s̄. */
MF_INLINE uint64_t c3_score(uint64_t requests, const struct chosen_server *server)
{
    number waits = plus(number_of(1 + requests), server->queue);
    number service = server->service ? server->service : server->response;
    uint64_t m = mantissa_of(waits);
    uint64_t cube = (m * m >> 32) * m;
    int32_t one = 3 * (int32_t)NUMBER_BIAS - 32 - 3 * (int32_t)exponent_of(waits);
    if (one >= 0)
        cube -= 1ull << (one & 63);
    uint64_t product = (cube >> 32) * mantissa_of(service);
    /* From the product's unit, which is 2^(3e + 64) of that of the service time's mantissa, to a multiple. */
    int32_t shift = one - 32 + (int32_t)NUMBER_BIAS - SCORE_FRACTION - (int32_t)exponent_of(service);
    uint64_t response = parts_of(server->response), wait = product >> (shift & 63);
    if (MF_LIKELY(shift >= 0 && wait < SCORE_LARGE && wait + response < SCORE_LARGE))
        return 1 + wait + response;
    return large_score(response, product, shift); /* also for a negative shift: the product then has at least 60 bits */
}

/* A server's outstanding requests, scaled to all selectors. */
MF_INLINE uint64_t requests_of(const struct mf_cache *s, const struct chosen_server *server)
{
    return (uint64_t)server->outstanding * s->selection.selectors;
}

/* An unknown server is tried first, then comes last. */
MF_INLINE uint64_t score_of(struct mf_cache *s, struct chosen_server *server, uint64_t now_ns)
{
    if (s->selection.kind != MF_SELECT_C3)
        return server->outstanding;
    if (MF_UNLIKELY(now_ns >= server->known_until_ns))
        return server->outstanding ? SCORE_UNKNOWN | server->outstanding : 0;
    if (server->score == 0)
        server->score = c3_score(requests_of(s, server), server);
    return server->score;
}

#endif
