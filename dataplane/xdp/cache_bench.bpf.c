// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* Benchmarks of the cache program: per packet, and per frame including XDP. */
#include "cache.bpf.c"

#include "bench.h"
