// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* What a frame costs the shell and the replicas program together. Only benchmarks load it. */
#include "replicas.bpf.c"

#include "bench.h"
