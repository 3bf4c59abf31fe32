// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* The tasks program in the kernel. All its handlers but the most frequent one are functions of their own; what leads to them
 * is part of each shell. */
#include "../src/tasks.c"

#define PROGRAM_STATE struct mf_tasks
#define PROGRAM_ORDER struct mf_tasks_order
#define PROGRAM(name) mf_tasks_##name
/* Its leases bind nobody: while the machine is suspended they may stand still. */
#define PROGRAM_NOW() bpf_ktime_get_ns()

#include "shells.h"
