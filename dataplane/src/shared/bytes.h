/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Integers in network byte order, and small arithmetic. */
#ifndef MIDFLIGHT_BYTES_H
#define MIDFLIGHT_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "midflight/wire.h"

#define MF_INLINE static inline __attribute__((always_inline))
/* Handlers are not inlined: one function with all of them would run out of registers. */
#define MF_HANDLER static __attribute__((noinline))
/* The kernel build inlines the handler of the most frequent packet, because a return costs 10 ns on processors whose mitigation mispredicts
 * every return. (Inlining a second one would exceed the verifier's limit.) */
#ifdef __bpf__
#define MF_FREQUENT_HANDLER MF_INLINE
#else
#define MF_FREQUENT_HANDLER MF_HANDLER
#endif
/* Rarely called functions. In the kernel build they are not static, so the verifier checks each once instead of at each call (100,000
 * instructions instead of 330,000). Their prototypes mark arguments in the arena by MF_IN_ARENA; the body casts those by MF_FROM_ARENA. The
 * verifier lets such functions return numbers only. */
#ifdef __bpf__
#define MF_RARE __attribute__((noinline))
#define MF_IN_ARENA __attribute__((btf_decl_tag("arg:arena")))
#define MF_FROM_ARENA(pointer) ((pointer) = (__typeof__(pointer))(__typeof__(*(pointer)) MF_FAR *)(uintptr_t)(pointer))
#else
#define MF_RARE static __attribute__((noinline))
#define MF_IN_ARENA
#define MF_FROM_ARENA(pointer) ((void)0)
#endif
#define MF_LIKELY(x) __builtin_expect(!!(x), 1)
#define MF_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* BPF has no instruction for these three: lowest set bit, highest set bit, prefetch. */
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
#define mf_little16(x) (x)
#define mf_little64(x) (x)
#else
#define mf_net16(x) ((uint16_t)(x))
#define mf_net32(x) ((uint32_t)(x))
#define mf_net64(x) ((uint64_t)(x))
#define mf_low_byte_first(x) __builtin_bswap32(x)
#define mf_little16(x) __builtin_bswap16(x)
#define mf_little64(x) __builtin_bswap64(x)
#endif

/* Distance of two serial numbers (RFC 1982): positive if `a` is later. */
MF_INLINE int32_t mf_serial_distance(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}

/* Spreads a 64-bit value over all bits (splitmix64's finaliser). */
MF_INLINE uint64_t mf_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* 32 mixed bits of a salted value, good enough for hash tables. */
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

/* Memory as 32-bit words, of any type. */
typedef uint32_t __attribute__((may_alias)) mf_word;

/* The first word of a packet, at any alignment. */
struct MF_WIRE __attribute__((may_alias)) mf_first_word {
    uint32_t word;
};

#ifdef __bpf__
/* Copies a structure whose size is a multiple of 4, eight bytes at a time: the arena allows unaligned access. */
typedef uint64_t __attribute__((may_alias)) mf_long;

#define MF_COPY(to, from)                                                                          \
    do {                                                                                           \
        mf_long *to_ = (mf_long *)(to);                                                            \
        const mf_long *from_ = (const mf_long *)(from);                                            \
        _Pragma("unroll") for (uint32_t i_ = 0; i_ < sizeof(*(to)) / sizeof(mf_long); i_++)        \
            to_[i_] = from_[i_];                                                                   \
        if (sizeof(*(to)) % sizeof(mf_long))                                                       \
            *(mf_word *)&to_[sizeof(*(to)) / sizeof(mf_long)] =                                    \
                *(const mf_word *)&from_[sizeof(*(to)) / sizeof(mf_long)];                         \
    } while (0)
#else
#define MF_COPY(to, from) (*(to) = *(from))
#endif

/* An address as words, in the byte order of memory. */
struct MF_WIRE __attribute__((may_alias)) address_words {
    uint64_t high, low;
    uint16_t port;
    uint16_t reserved;
};

/* Casts, so that an address in the arena can be compared with one outside. */
#define mf_address_equal(a, b) mf_is_address((const struct mf_address *)(a), (const struct mf_address *)(b))

MF_INLINE int mf_is_address(const struct mf_address *a, const struct mf_address *b)
{
#ifdef __bpf__
    const mf_long *x = (const mf_long *)a, *y = (const mf_long *)b;
    const mf_word *v = (const mf_word *)&x[2], *w = (const mf_word *)&y[2]; /* the port, and `reserved`, which is 0 */
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (uint64_t)(*v ^ *w)) == 0;
#else
    return __builtin_memcmp(a->ip, b->ip, sizeof(a->ip)) == 0 && a->port == b->port;
#endif
}

#endif
