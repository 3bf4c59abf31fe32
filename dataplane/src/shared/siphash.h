/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* SipHash-2-4 (Aumasson and Bernstein, 2012), a keyed hash. */
#ifndef MIDFLIGHT_SIPHASH_H
#define MIDFLIGHT_SIPHASH_H

#include "bytes.h"

#define MESSAGE_BYTES 32ull

struct siphash {
    uint64_t a, b, c, d;
};

MF_INLINE uint64_t rotate_left(uint64_t x, uint32_t bits)
{
    return x << bits | x >> (64 - bits);
}

MF_INLINE void siphash_round(struct siphash *h)
{
    h->a += h->b;
    h->b = rotate_left(h->b, 13) ^ h->a;
    h->a = rotate_left(h->a, 32);
    h->c += h->d;
    h->d = rotate_left(h->d, 16) ^ h->c;
    h->a += h->d;
    h->d = rotate_left(h->d, 21) ^ h->a;
    h->c += h->b;
    h->b = rotate_left(h->b, 17) ^ h->c;
    h->c = rotate_left(h->c, 32);
}

MF_INLINE void siphash_word(struct siphash *h, uint64_t word)
{
    h->d ^= word;
    siphash_round(h);
    siphash_round(h);
    h->a ^= word;
}

MF_INLINE struct siphash siphash_start(uint64_t key0, uint64_t key1)
{
    struct siphash h = {
        key0 ^ 0x736f6d6570736575ull,
        key1 ^ 0x646f72616e646f6dull,
        key0 ^ 0x6c7967656e657261ull,
        key1 ^ 0x7465646279746573ull,
    };
    return h;
}

/* Ends the hash of a message of `bytes`, a multiple of eight, whose words were absorbed. */
MF_INLINE uint64_t siphash_end(struct siphash *h, uint64_t bytes)
{
    siphash_word(h, bytes << 56);
    h->c ^= 0xff;
    siphash_round(h);
    siphash_round(h);
    siphash_round(h);
    siphash_round(h);
    return h->a ^ h->b ^ h->c ^ h->d;
}

/* Hashes four little-endian 64-bit words. */
MF_RARE uint64_t siphash(const uint64_t *key MF_IN_ARENA, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
    MF_FROM_ARENA(key);
    struct siphash h = siphash_start(key[0], key[1]);
    siphash_word(&h, first);
    siphash_word(&h, second);
    siphash_word(&h, third);
    siphash_word(&h, fourth);
    return siphash_end(&h, MESSAGE_BYTES);
}

#endif
