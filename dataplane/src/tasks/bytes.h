/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Integers in network byte order, and the small arithmetic that every part uses. */
#ifndef MIDFLIGHT_BYTES_H
#define MIDFLIGHT_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "midflight/wire.h"

#define MF_INLINE static inline __attribute__((always_inline))
/* Handlers stay functions of their own: one that holds all others has no registers left. */
#define MF_HANDLER static __attribute__((noinline))
#define MF_LIKELY(x) __builtin_expect(!!(x), 1)
#define MF_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Three things that a processor has instructions for and the kernel's machine has not: the number of the lowest bit
 * that is set, of the highest one, and a hint to fetch memory. */
#ifdef __bpf__
MF_INLINE uint32_t mf_lowest_bit(uint64_t x)
{
    return (uint32_t)__builtin_popcountll((x & -x) - 1);
}

MF_INLINE uint32_t mf_highest_bit(uint64_t x)
{
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    x |= x >> 16;
    x |= x >> 32;
    return (uint32_t)__builtin_popcountll(x) - 1;
}

#define MF_PREFETCH(address) ((void)(address))
#else
#define mf_lowest_bit(x) ((uint32_t)__builtin_ctzll(x))
#define mf_highest_bit(x) (63u - (uint32_t)__builtin_clzll(x))
#define MF_PREFETCH(address) __builtin_prefetch((address), 1)
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define mf_net16(x) __builtin_bswap16(x)
#define mf_net32(x) __builtin_bswap32(x)
#define mf_net64(x) __builtin_bswap64(x)
#define mf_low_byte_first(x) (x)
#else
#define mf_net16(x) ((uint16_t)(x))
#define mf_net32(x) ((uint32_t)(x))
#define mf_net64(x) ((uint64_t)(x))
#define mf_low_byte_first(x) __builtin_bswap32(x)
#endif

/* Distance of two serial numbers (RFC 1982): positive where `a` is the later one. */
MF_INLINE int32_t mf_serial_distance(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}

/* Spreads a 64-bit value over all bits (the finaliser of splitmix64). */
MF_INLINE uint64_t mf_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* 32 well-mixed bits of a salted value: enough for hash tables. */
MF_INLINE uint32_t mf_hash(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 32)) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(x >> 32);
}

/* Bits 0 to n - 1, n from 1 to 32. */
MF_INLINE uint32_t mf_low_bits(uint32_t n)
{
    return 0xffffffffu >> (32 - n);
}

/* Memory as 32-bit words, whatever lies in it. */
typedef uint32_t __attribute__((may_alias)) mf_word;

/* Copies a structure that is aligned to 4. For the kernel word by word: clang 19 does not see that a copy of several words
 * leads into the arena. */
#ifdef __bpf__
#define MF_COPY(to, from)                                                                          \
    do {                                                                                           \
        mf_word MF_FAR *to_ = (mf_word MF_FAR *)(to);                                              \
        const mf_word MF_FAR *from_ = (const mf_word MF_FAR *)(from);                              \
        _Pragma("unroll") for (uint32_t i_ = 0; i_ < sizeof(*(to)) / sizeof(mf_word); i_++)        \
            to_[i_] = from_[i_];                                                                   \
    } while (0)
#else
#define MF_COPY(to, from) (*(to) = *(from))
#endif

MF_INLINE int mf_address_equal(const struct mf_address MF_FAR *a, const struct mf_address MF_FAR *b)
{
#ifdef __bpf__
    const mf_word MF_FAR *x = (const mf_word MF_FAR *)a;
    const mf_word MF_FAR *y = (const mf_word MF_FAR *)b;
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (uint32_t)(a->port ^ b->port)) == 0;
#else
    return __builtin_memcmp(a->ip, b->ip, sizeof(a->ip)) == 0 && a->port == b->port;
#endif
}

#endif
