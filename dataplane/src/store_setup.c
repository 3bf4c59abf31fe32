// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* Initialises the state, also for the kernel: it holds offsets, not pointers. */
#include "store/state.h"

/* Gap after each set's key groups. ASan builds set it to detect an index out of bounds. */
#ifndef MF_REDZONE
#define MF_REDZONE 0
#endif

#define LINE 64ull

static uint64_t pad(uint64_t bytes)
{
    return ((bytes + LINE - 1) & ~(LINE - 1)) + MF_REDZONE;
}

static uint64_t stride_of(const struct mf_store_config *c)
{
    return pad((uint64_t)KGROUP_BYTES << c->kgroup_bits);
}

#if MF_REDZONE
void __asan_poison_memory_region(const volatile void *start, uint64_t bytes);

static void poison_gaps(struct mf_store *s)
{
    for (uint32_t place = 0; place <= s->sets_max; place++)
        __asan_poison_memory_region((uint8_t *)s + s->kgroups_at + place * s->kgroups_stride - MF_REDZONE, MF_REDZONE);
}
#endif

uint64_t mf_store_size(const struct mf_store_config *c)
{
    if (c->sets < 1 || c->sets > MF_SETS_MAX || c->kgroup_bits > MF_KGROUP_BITS_MAX)
        return 0;
    if (c->lease_ns == 0 || c->lease_ns > MF_LEASE_MAX_NS || c->cookie_ns == 0)
        return 0;
    return pad(sizeof(struct mf_store)) + c->sets * stride_of(c);
}

void mf_store_init(struct mf_store *s, const struct mf_store_config *c, uint32_t epoch, const uint64_t key[2])
{
    (void)epoch;
    s->cookie_key[0] = key[0];
    s->cookie_key[1] = key[1];
    s->cookie_ns = c->cookie_ns;
    s->lease_ns = c->lease_ns;
    s->kgroups_at = pad(sizeof(*s));
    s->kgroups_stride = stride_of(c);
    s->sets_max = c->sets;
    s->kgroup_bits = c->kgroup_bits;
#if MF_REDZONE
    poison_gaps(s);
#endif
}

void mf_store_stats(const struct mf_store *s, struct mf_store_stats *stats)
{
    __builtin_memcpy(stats->packets, s->packets, sizeof(stats->packets));
    __builtin_memcpy(stats->reasons, s->reasons, sizeof(stats->reasons));
    for (uint32_t place = 0; place < MF_SETS_MAX; place++)
        stats->sets[place] = s->sets[place].stats;
}
