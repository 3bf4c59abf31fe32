/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Differences between the two builds of the core, from one source: native code and BPF.
 *
 * In the kernel, state and packets are in a BPF arena: 4 GiB with its own addresses, in which the verifier lets a program follow any
 * pointer. MF_FAR marks pointers into the arena for the compiler (clang 19 or later) and is empty in a native build. A cast to an ordinary
 * pointer is one instruction, after which the verifier knows the target and the compiler treats it like any other. So each function that
 * the kernel's processes call casts its arguments once, at its start. `docs/internals/kernel.md` explains the rest.
 */
#ifndef MIDFLIGHT_TARGET_H
#define MIDFLIGHT_TARGET_H

#include <stdint.h>

#ifdef __bpf__

#ifdef __BPF_FEATURE_ADDR_SPACE_CAST
#define MF_FAR __attribute__((address_space(1)))
#else
#define MF_FAR /* before clang 19 the code compiles but does not load: only for the compiler's warnings */
#endif

/* In the arena every structure is aligned to 4. Without this the compiler reads byte by byte. */
#define MF_WIRE __attribute__((aligned(4)))

/* The whole core is inlined into each caller, which saves calls and returns. */
#define MF_ENTRY static __attribute__((always_inline, unused)) inline

/* The verifier unrolls a loop until it meets a known state. A known counter would make each round a new state, so counters start at
 * MF_ZERO, whose value the verifier cannot see. It also needs a bound: may_goto leaves the loop after eight million rounds, far more than
 * any loop here needs. */
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

/* Hides the pointer's origin, so that the compiler does not compute field addresses before a loop and spill them to the stack. */
#define MF_OPAQUE(pointer)                                                                                               \
    ({                                                                                                                 \
        __typeof__(pointer) at = (pointer);                                                                            \
        __asm__ volatile("" : "+r"(at));                                                                               \
        at;                                                                                                            \
    })

#else

#define MF_FAR
#define MF_WIRE __attribute__((packed)) /* no structure has holes; `packed` allows any address */
#define MF_ENTRY
#define MF_ZERO 0u
#define MF_LOOP(condition) (condition)
#define MF_OPAQUE(pointer) (pointer)

#endif

#endif
