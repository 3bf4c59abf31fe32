// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* Benchmarks of the store program: per packet, and per frame including XDP. */
#include "store.bpf.c"

#include "bench.h"
