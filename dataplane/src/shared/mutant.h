/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Bugs that are planted to see whether the fault campaign finds them (docs/internals/mutants.md). Only builds for that purpose
 * define MF_MUTANTS, and in them only the bug whose number is set is active. In all other builds MF_MUTANT is 0, and the compiler
 * removes the bugs.
 */
#ifndef MIDFLIGHT_MUTANT_H
#define MIDFLIGHT_MUTANT_H

#ifdef MF_MUTANTS
extern _Thread_local uint32_t mf_mutant; /* 0: none */
#define MF_MUTANT(number) (mf_mutant == (number))
#else
#define MF_MUTANT(number) 0
#endif

#endif
