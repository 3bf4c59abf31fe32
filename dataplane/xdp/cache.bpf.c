// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* The cache program in the kernel. */
#include "../src/cache.c"

#define PROGRAM_STATE struct mf_cache
#define PROGRAM_ORDER struct mf_cache_order
#define PROGRAM(name) mf_cache_##name
/* Its cookies may live longer while the machine is suspended. */
#define PROGRAM_NOW() bpf_ktime_get_ns()

#include "shells.h"
