// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* The tasks program in the kernel. */
#include "../src/tasks.c"

#define PROGRAM_STATE struct mf_tasks
#define PROGRAM_ORDER struct mf_tasks_order
#define PROGRAM(name) mf_tasks_##name
/* Its leases only clean up after silent peers, so they may pause while the machine is suspended. */
#define PROGRAM_NOW() bpf_ktime_get_ns()

#include "shells.h"
