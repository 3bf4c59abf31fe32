// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* What a packet costs the tasks program, and a frame the shell and the program together. Only benchmarks load it. */
#include "tasks.bpf.c"

#include "bench.h"
