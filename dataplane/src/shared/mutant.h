/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Planted bugs, which the fault campaign or the tests should find (docs/internals/mutants.md). Only builds for that purpose define
 * MF_MUTANTS, and in them one bug at a time is active. In other builds MF_MUTANT is 0 and the compiler removes the bugs.
 */
#ifndef MIDFLIGHT_MUTANT_H
#define MIDFLIGHT_MUTANT_H

#ifdef MF_MUTANTS
#ifdef __bpf__
/* The loader sets it, in a section of its own, so the verifier knows it and drops the other bugs. 0: none. Only bugs of the kernel's
 * processes are here: with those of the core, which native builds cover, the verifier would have too much to do. */
static const volatile uint32_t mf_mutant __attribute__((section(".rodata.mutant"), used)) = 0;
#define MF_MUTANT(number) ((number) / 20 == 3 && mf_mutant == (number))
#else
extern _Thread_local uint32_t mf_mutant; /* 0: none */
#define MF_MUTANT(number) (mf_mutant == (number))
#endif
#else
#define MF_MUTANT(number) 0
#endif

#endif
