/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Reads and writes frames eight, four or two bytes at a time, and sums them while copying. */
#ifndef MIDFLIGHT_WORDS_H
#define MIDFLIGHT_WORDS_H

#include "arena.h"

#include "../src/shared/bytes.h"
#include "../src/shared/mutant.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the shells compose frames from little-endian words: build for a little-endian machine"
#endif

typedef uint16_t __attribute__((may_alias)) mf_half;
typedef uint64_t __attribute__((may_alias)) mf_long;

#define LONG_AT(p) (*(const mf_long *)(p))
#define WORD_AT(p) (*(const mf_word *)(p))
#define HALF_AT(p) (*(const mf_half *)(p))
#define PUT_LONG(p, value) (*(mf_long *)(p) = (value))
#define PUT_WORD(p, value) (*(mf_word *)(p) = (value))
#define PUT_HALF(p, value) (*(mf_half *)(p) = (uint16_t)(value))

#define FAR_LONG(p) (*(mf_long MF_FAR *)(p))
#define FAR_WORD(p) (*(mf_word MF_FAR *)(p))
#define FAR_HALF(p) (*(mf_half MF_FAR *)(p))

/* A mask that shows the verifier a small offset. In C, the compiler would remove it as redundant. */
#define MF_MASK(value, mask)                                                                       \
    ({                                                                                             \
        uint64_t masked_ = (value);                                                                \
        __asm__("%0 &= " #mask : "+r"(masked_));                                                   \
        masked_;                                                                                   \
    })

/* The Internet checksum (RFC 1071) is a sum of 16-bit words. Wider words may be summed instead and folded at the end; a frame has too few
 * to overflow 64 bits. The sum works in either byte order, so words keep that of memory. */
MF_INLINE uint64_t sum_long(uint64_t sum, uint64_t value)
{
    return sum + (uint32_t)value + (value >> 32);
}

/* The largest value after each line: 33 bits, 0x20000, 0x10000, 0xffff. */
MF_INLINE uint16_t sum_fold(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/* Bytes per round of the loops below: enough to amortise the loop. */
#define ROUND 32

/* Copies `length` bytes of a frame, at most MF_PACKET_MAX, from `from` on, and adds them to a sum. 0: the frame is shorter. */
MF_INLINE int copy_in(uint8_t MF_FAR *to, const uint8_t *from, const uint8_t *end, uint32_t length, uint64_t *sum)
{
    uint64_t total = *sum;
    uint32_t i = MF_ZERO;
    for (; MF_LOOP(i + ROUND <= length); i += ROUND) {
        const uint8_t *p = from + MF_MASK(i, 0x7ff);
        if (p + ROUND > end)
            return 0;
        uint64_t a = LONG_AT(p), b = LONG_AT(p + 8), c = LONG_AT(p + 16), d = LONG_AT(p + 24);
        FAR_LONG(to + i) = a;
        FAR_LONG(to + i + 8) = b;
        FAR_LONG(to + i + 16) = c;
        FAR_LONG(to + i + 24) = d;
        total = sum_long(sum_long(sum_long(sum_long(total, a), b), c), d);
    }
    for (; MF_LOOP(i + 8 <= length); i += 8) {
        const uint8_t *p = from + MF_MASK(i, 0x7ff);
        if (p + 8 > end)
            return 0;
        FAR_LONG(to + i) = LONG_AT(p);
        total = sum_long(total, LONG_AT(p));
    }
    if (length & 4) {
        const uint8_t *p = from + MF_MASK(i, 0x7ff);
        if (p + 4 > end)
            return 0;
        FAR_WORD(to + i) = WORD_AT(p);
        total += WORD_AT(p);
        i += 4;
    }
    if (length & 2) {
        const uint8_t *p = from + MF_MASK(i, 0x7ff);
        if (p + 2 > end)
            return 0;
        FAR_HALF(to + i) = HALF_AT(p);
        total += HALF_AT(p);
        i += 2;
    }
    if (length & 1) {
        const uint8_t *p = from + MF_MASK(i, 0x7ff);
        if (p + 1 > end)
            return 0;
        to[i] = *p;
        total += MF_MUTANT(64) ? 0 : *p; /* planted bug: does not sum the last byte of an odd length */
    }
    *sum = total;
    return 1;
}

/* Change of a sum by replaced words. Eight bytes take two additions instead of four: `all` sums the long words and wraps, `high` sums their
 * high halves and does not; together they give the sum of the low halves. */
struct difference {
    uint64_t all;
    uint64_t high;
};

MF_INLINE void replace_in_sum(struct difference *sum, uint64_t old, uint64_t new)
{
    sum->all += new - old;
    sum->high += (new >> 32) - (old >> 32);
}

/* A multiple of 0xffff, which leaves a checksum unchanged, larger than any difference here (at most 2^33 for each of 154 long words,
 * MF_PACKET_MAX): so no sum becomes negative. */
#define POSITIVE (0xffffull << 28)

/* The difference as a summand of a checksum. */
MF_INLINE uint64_t sum_of_difference(const struct difference *sum)
{
    return POSITIVE + sum->high + (sum->all - (sum->high << 32));
}

/* Replaces the long word at `offset` of a frame's part by the arena's. */
#define REPLACE_LONG(offset)                                                                                           \
    do {                                                                                                               \
        uint64_t old_ = LONG_AT(p + (offset)), new_ = FAR_LONG(from + i + (offset));                                   \
        PUT_LONG(p + (offset), new_);                                                                                  \
        replace_in_sum(sum, old_, new_);                                                                               \
    } while (0)

/* Replaces `length` bytes of a frame, a multiple of 4, by those of the arena. 0: the frame is shorter. */
MF_INLINE int replace(uint8_t *to, const uint8_t *end, const uint8_t MF_FAR *from, uint32_t length, struct difference *sum)
{
    uint32_t i = MF_ZERO;
    for (; MF_LOOP(i + ROUND <= length); i += ROUND) {
        uint8_t *p = to + MF_MASK(i, 0x7ff);
        if (p + ROUND > end)
            return 0;
        REPLACE_LONG(0);
        REPLACE_LONG(8);
        REPLACE_LONG(16);
        REPLACE_LONG(24);
    }
    for (; MF_LOOP(i < length); i += sizeof(mf_word)) {
        uint8_t *p = to + MF_MASK(i, 0x7ff);
        if (p + sizeof(mf_word) > end)
            return 0;
        replace_in_sum(sum, WORD_AT(p), FAR_WORD(from + i));
        PUT_WORD(p, FAR_WORD(from + i));
    }
    return 1;
}

/* copy_in from the arena into a frame. */
MF_INLINE int copy_out(uint8_t *to, const uint8_t *end, const uint8_t MF_FAR *from, uint32_t length, uint64_t *sum)
{
    uint64_t total = *sum;
    uint32_t i = MF_ZERO;
    for (; MF_LOOP(i + ROUND <= length); i += ROUND) {
        uint8_t *p = to + MF_MASK(i, 0x7ff);
        if (p + ROUND > end)
            return 0;
        uint64_t a = FAR_LONG(from + i), b = FAR_LONG(from + i + 8), c = FAR_LONG(from + i + 16), d = FAR_LONG(from + i + 24);
        PUT_LONG(p, a);
        PUT_LONG(p + 8, b);
        PUT_LONG(p + 16, c);
        PUT_LONG(p + 24, d);
        total = sum_long(sum_long(sum_long(sum_long(total, a), b), c), d);
    }
    for (; MF_LOOP(i + 8 <= length); i += 8) {
        uint8_t *p = to + MF_MASK(i, 0x7ff);
        if (p + 8 > end)
            return 0;
        PUT_LONG(p, FAR_LONG(from + i));
        total = sum_long(total, FAR_LONG(from + i));
    }
    if (length & 4) {
        uint8_t *p = to + MF_MASK(i, 0x7ff);
        if (p + 4 > end)
            return 0;
        PUT_WORD(p, FAR_WORD(from + i));
        total += FAR_WORD(from + i);
        i += 4;
    }
    if (length & 2) {
        uint8_t *p = to + MF_MASK(i, 0x7ff);
        if (p + 2 > end)
            return 0;
        PUT_HALF(p, FAR_HALF(from + i));
        total += FAR_HALF(from + i);
        i += 2;
    }
    if (length & 1) {
        uint8_t *p = to + MF_MASK(i, 0x7ff);
        if (p + 1 > end)
            return 0;
        *p = from[i];
        total += from[i];
    }
    *sum = total;
    return 1;
}

#endif
