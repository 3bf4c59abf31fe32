/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The spin lock of the program's state. BPF programs run with softirqs off, so a taker never interrupts the holder on the same CPU: no
 * deadlock. `bpf_spin_lock` takes 45 ns to lock and unlock, twice the work that it guards; this takes 2.
 */
#ifndef MIDFLIGHT_LOCK_H
#define MIDFLIGHT_LOCK_H

#include "arena.h"

/* A holder needs microseconds. After about a millisecond a taker gives up and passes its packet to the stack. The bound is below 65,535
 * rounds, from where the kernel limits a program's time in loops. */
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
    /* x86 shows stores to other CPUs in program order, so a plain store releases the lock. */
    __asm__ volatile("" ::: "memory");
    *(volatile uint32_t MF_FAR *)&MF_CONTROL->lock = 0;
#else
    __sync_lock_test_and_set(&MF_CONTROL->lock, 0);
#endif
}

#endif
