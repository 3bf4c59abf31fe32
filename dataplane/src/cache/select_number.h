/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Numbers for C3: the kernel has no floating point, and C3's cube of a queue times nanoseconds needs more than 64 bits. A number is 0 or
 * positive, m × 2^e with m from 2^31 up to 2^32, in 64 bits: e + BIAS above m, so numbers compare as integers. Each operation truncates
 * after 32 bits: its relative error is below 2^-31.
 */
#ifndef MIDFLIGHT_CACHE_SELECT_NUMBER_H
#define MIDFLIGHT_CACHE_SELECT_NUMBER_H

#include "shared/bytes.h"

typedef uint64_t number;

#define NUMBER_BIAS 512u       /* smaller values than 2^(31 - BIAS) are 0 */
#define NUMBER_BITS 32u        /* of m */
#define NUMBER_MAX_EXPONENT 1023u

MF_INLINE uint32_t exponent_of(number x)
{
    return (uint32_t)(x >> NUMBER_BITS);
}

MF_INLINE uint64_t mantissa_of(number x)
{
    return (uint32_t)x;
}

/* m × 2^(exponent - BIAS); the highest bit of m must be bit 31. */
MF_INLINE number number_of_parts(uint32_t exponent, uint64_t m)
{
    /* An exponent below 0 has wrapped. At the other end, scores reach about 650 within all bounds. */
    if (MF_UNLIKELY(exponent > NUMBER_MAX_EXPONENT))
        return 0;
    return (uint64_t)exponent << NUMBER_BITS | m;
}

MF_INLINE number number_of(uint64_t whole)
{
    if (whole == 0)
        return 0;
    uint32_t highest = mf_highest_bit(whole);
    uint64_t m = highest > 31 ? whole >> (highest - 31) : whole << (31 - highest);
    return number_of_parts(NUMBER_BIAS + highest - 31, m);
}

MF_INLINE number times(number a, number b)
{
    if (a == 0 || b == 0)
        return 0;
    uint64_t product = mantissa_of(a) * mantissa_of(b); /* from 2^62 up to 2^64 */
    uint32_t is_long = (uint32_t)(product >> 63);
    return number_of_parts(exponent_of(a) + exponent_of(b) - NUMBER_BIAS + 31 + is_long, product >> (31 + is_long));
}

MF_INLINE number plus(number a, number b)
{
    number more = a > b ? a : b, less = a > b ? b : a;
    uint32_t further = exponent_of(more) - exponent_of(less);
    if (less == 0 || further >= NUMBER_BITS)
        return more;
    uint64_t sum = mantissa_of(more) + (mantissa_of(less) >> further);
    uint32_t is_long = (uint32_t)(sum >> NUMBER_BITS);
    return number_of_parts(exponent_of(more) + is_long, sum >> is_long);
}

/* Constants 0.9 and 0.1, precomputed. */
#define NUMBER_PARTS(exponent, m) ((uint64_t)(NUMBER_BIAS + (exponent)) << NUMBER_BITS | (m))
#define NUMBER_9_TENTHS NUMBER_PARTS(-32, 0xe6666666ull)
#define NUMBER_1_TENTH NUMBER_PARTS(-35, 0xccccccccull)

#endif
