// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* What a frame costs the shell and the reads program together. Only benchmarks load it. */
#include "reads.bpf.c"

#include "bench.h"
