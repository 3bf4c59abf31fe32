/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * What differs between the two builds of the core (rule 4 of the house): native code, and BPF for the kernel.
 *
 * In the kernel, state and packets lie in a BPF arena: 4 GiB of memory with addresses of its own, in which the verifier lets
 * a program follow any pointer. The compiler must know which pointers lead there: MF_FAR says so, and is nothing in a native
 * build. It needs clang 19. A cast of such a pointer to an ordinary one is one instruction, after which the verifier knows
 * where it leads, and the compiler handles it like any other: so the core casts once, at its door.
 * `docs/internals/kernel.md` tells the rest.
 */
#ifndef MIDFLIGHT_TARGET_H
#define MIDFLIGHT_TARGET_H

#include <stdint.h>

#ifdef __bpf__

#ifdef __BPF_FEATURE_ADDR_SPACE_CAST
#define MF_FAR __attribute__((address_space(1)))
#else
#define MF_FAR /* before clang 19: good for its warnings only */
#endif

/* Every structure is aligned, and a compiler that doubts it reads byte by byte. */
#define MF_WIRE __attribute__((aligned(4)))

/* One program: all of the core is part of it. */
#define MF_ENTRY static __attribute__((always_inline, unused)) inline

/* The verifier follows a loop until it finds nothing new, so it must not know how often the loop has run: counters start
 * at MF_ZERO, whose value it cannot see. It asks for a bound of its own: may_goto leaves the loop after eight million
 * rounds, which none of ours gets near. */
static volatile uint32_t mf_zero;
#define MF_ZERO mf_zero
#define MF_LOOP(condition) ((condition) && mf_go_on())
#ifdef __BPF_FEATURE_ADDR_SPACE_CAST
#define mf_go_on()                                                                                                     \
    ({                                                                                                                 \
        __label__ out, on;                                                                                             \
        _Bool more = 1;                                                                                                \
        __asm__ volatile goto("may_goto %l[out]" :: :: out);                                                           \
        goto on;                                                                                                       \
    out:                                                                                                               \
        more = 0;                                                                                                      \
    on:                                                                                                                \
        more;                                                                                                          \
    })
#else
#define mf_go_on() 1
#endif

/* A pointer of which the compiler knows nothing: addresses computed from it are not computed before a loop, and kept on the
 * stack for it. */
#define MF_HERE(pointer)                                                                                               \
    ({                                                                                                                 \
        __typeof__(pointer) at = (pointer);                                                                            \
        __asm__ volatile("" : "+r"(at));                                                                               \
        at;                                                                                                            \
    })

#else

#define MF_FAR
#define MF_WIRE __attribute__((packed)) /* no structure has holes; this says that it may lie at any address */
#define MF_ENTRY
#define MF_ZERO 0u
#define MF_LOOP(condition) (condition)
#define MF_HERE(pointer) (pointer)

#endif

#endif
