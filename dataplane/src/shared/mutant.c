// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* The active planted bug of a thread, for the cores of all programs. Only builds with MF_MUTANTS compile it. */
#include "midflight/wire.h"

#include "shared/mutant.h"

_Thread_local uint32_t mf_mutant;

void mf_plant(uint32_t number);

void mf_plant(uint32_t number)
{
    mf_mutant = number;
}
