// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* The replicas program in the kernel. */
#include "../src/replicas.c"

#define PROGRAM_STATE struct mf_replicas
#define PROGRAM_ORDER struct mf_replicas_order
#define PROGRAM(name) mf_replicas_##name
/* Its cookies may live longer while the machine is suspended. */
#define PROGRAM_NOW() bpf_ktime_get_ns()

#include "shells.h"
