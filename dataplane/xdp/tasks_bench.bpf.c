// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* Benchmarks of the tasks program: per packet, and per frame including XDP. */
#include "tasks.bpf.c"

#include "bench.h"
