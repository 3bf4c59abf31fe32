/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * What differs between the two builds of the core (rule 4 of the house): native code, and BPF for the kernel.
 *
 * In the kernel, state and packets lie in a BPF arena: 4 GiB of memory with addresses of its own, in which the verifier lets
 * a program follow any pointer. The compiler must know which pointers lead there: MF_FAR marks them, and is empty in a native
 * build. It needs clang 19. A cast of such a pointer to an ordinary one is one instruction; after it the verifier knows where the
 * pointer leads, and the compiler treats it like any other. So each function that the shells call casts its arguments once, at
 * its beginning. `docs/internals/kernel.md` explains the rest.
 */
#ifndef MIDFLIGHT_TARGET_H
#define MIDFLIGHT_TARGET_H

#include <stdint.h>

#ifdef __bpf__

#ifdef __BPF_FEATURE_ADDR_SPACE_CAST
#define MF_FAR __attribute__((address_space(1)))
#else
#define MF_FAR /* before clang 19 the code compiles, but cannot be loaded: only good for the compiler's warnings */
#endif

/* In the arena every structure is aligned to 4. The compiler must know it, or it reads byte by byte. */
#define MF_WIRE __attribute__((aligned(4)))

/* The whole core is inlined into each shell, so that calls and returns cost nothing. */
#define MF_ENTRY static __attribute__((always_inline, unused)) inline

/* The verifier follows a loop round by round until it meets a state that it has seen. If it knew the counter, each round would be
 * a new state; so counters start at MF_ZERO, whose value it cannot see. It also wants a bound that it can trust: may_goto
 * leaves the loop after eight million rounds, far more than any loop here needs. */
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

/* The same pointer, but the compiler cannot know that: so it does not compute addresses of fields before a loop, and does not
 * keep them on the stack. */
#define MF_OPAQUE(pointer)                                                                                               \
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
#define MF_OPAQUE(pointer) (pointer)

#endif

#endif
