// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
#include "echo.h"

#define PROGRAM_STATE struct mf_echo
#define PROGRAM_ORDER uint64_t
#define PROGRAM(name) mf_echo_##name
#define PROGRAM_NOW() bpf_ktime_get_boot_ns()

#include "shells.h"
