/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * One lock for the queue. Programs run with softirqs off, so who holds it is never interrupted by who wants it on the same
 * CPU. `bpf_spin_lock` would do the same for 45 ns a pair, twice the price of the work that it guards; this costs 2 ns.
 */
#ifndef MIDFLIGHT_LOCK_H
#define MIDFLIGHT_LOCK_H

#include "arena.h"

/*
 * A holder needs microseconds. Who waits for about a millisecond is told no, and passes its packet up. Fewer than the 65,535
 * rounds after which the kernel looks at the clock: a wait never takes from the time that the queue's own loops have.
 */
#define MF_LOCK_TRIES (1u << 15)

static inline __attribute__((always_inline)) int mf_lock(void)
{
    if (__builtin_expect(__sync_lock_test_and_set(&MF_CONTROL->lock, 1) == 0, 1))
        return 1;
    for (uint32_t tries = MF_ZERO; MF_LOOP(tries < MF_LOCK_TRIES); tries++)
        if (__sync_lock_test_and_set(&MF_CONTROL->lock, 1) == 0)
            return 1;
    return 0;
}

static inline __attribute__((always_inline)) void mf_unlock(void)
{
#ifdef __TARGET_ARCH_x86
    /* Stores are seen in order there. */
    __asm__ volatile("" ::: "memory");
    *(volatile uint32_t MF_FAR *)&MF_CONTROL->lock = 0;
#else
    __sync_lock_test_and_set(&MF_CONTROL->lock, 0);
#endif
}

#endif
