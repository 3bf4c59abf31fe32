/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * How good a server is: requests outstanding, or the score of C3, which is kept until something of which it is made changes. Of the three or
 * so servers of a group, mostly one or two have changed since they were looked at last.
 */
#ifndef MIDFLIGHT_REPLICAS_SELECT_SCORE_H
#define MIDFLIGHT_REPLICAS_SELECT_SCORE_H

#include "select_servers.h"

/* Scores are compared as integers: 0, a server that is to be tried; below SCORE_LARGE, whole parts of 2^-SCORE_FRACTION ns; with that bit,
 * numbers of at least so many parts, which are in order too; from SCORE_UNKNOWN on, requests to servers that have not answered. */
#define SCORE_FRACTION 10
#define SCORE_LARGE (1ull << 59) /* 6.5 days */
#define SCORE_UNKNOWN (1ull << 63)

/* A time in whole parts. All times have less than 2^37 ns, so they have less than 2^47 parts. */
MF_INLINE uint64_t parts_of(number time)
{
    int32_t shift = (int32_t)exponent_of(time) - (int32_t)NUMBER_BIAS + SCORE_FRACTION;
    return shift >= 0 ? mantissa_of(time) << shift : mantissa_of(time) >> (-shift & 63);
}

/* The sum of a time in parts and of a product in units of 2^-shift of them; both are above 0. */
MF_RARE uint64_t large_score(uint64_t response, uint64_t product, int64_t shift)
{
    return SCORE_LARGE | plus(number_of(response), number_of(product) - ((uint64_t)shift << NUMBER_BITS));
}

/* Ψ = R̄ + (q̂³ − 1)·s̄, with q̂ = 1 + outstanding·n + q̄, without the steps that would bring each number into its form again. With q̂ = m·2^e the
 * cube is of 64 bits, in units of 2^(3e + 32), and 1 is a bit of it. What is lost of a score is less than two parts, and 2^-27 of itself and
 * of s̄. */
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
    /* Of the unit of the product, which is 2^(3e + 64) of that of the service time's mantissa, to a part. */
    int32_t shift = one - 32 + (int32_t)NUMBER_BIAS - SCORE_FRACTION - (int32_t)exponent_of(service);
    uint64_t response = parts_of(server->response), wait = product >> (shift & 63);
    if (MF_LIKELY(shift >= 0 && wait < SCORE_LARGE && wait + response < SCORE_LARGE))
        return 1 + wait + response;
    return large_score(response, product, shift); /* also where the shift is negative: the product has 60 bits at least then */
}

/* What a server's requests under way here count, as there are more selectors. */
MF_INLINE uint64_t requests_of(const struct mf_replicas *s, const struct chosen_server *server)
{
    return (uint64_t)server->outstanding * s->selection.selectors;
}

/* A server that is not known is tried first, then it is last. */
MF_INLINE uint64_t score_of(struct mf_replicas *s, struct chosen_server *server, uint64_t now_ns)
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
