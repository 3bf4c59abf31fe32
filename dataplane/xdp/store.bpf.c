// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* The store program in the kernel. */
#include <stdint.h>

/* Reading the clock costs as much as everything else, and the reply to a READ of a stable key group needs no time: see PROGRAM_NEEDS_TIME
 * below. If the reply must be turned back, the program reads the clock after all. */
static inline __attribute__((always_inline)) uint64_t now_ns(void);
#define MF_TIME_AFTER_ALL(call) now_ns()

#include "../src/store.c"

#define PROGRAM_STATE struct mf_store
#define PROGRAM_ORDER struct mf_store_order
#define PROGRAM(name) mf_store_##name
/* Its leases are promises to the next leader, whose time continues while this machine is suspended. */
#define PROGRAM_NOW() bpf_ktime_get_boot_ns()

/* Key and value pass untouched, so the cost of a READ and its reply does not depend on their length. */
#define PROGRAM_HEADER_BYTES sizeof(struct mf_request)
#define PROGRAM_DECIDES_BY_HEADER(operation) ((operation) == MF_OP_READ || (operation) == MF_OP_READ_REPLY)

#define PROGRAM_NEEDS_TIME(data)                                                                   \
    ((data)[offsetof(struct mf_header, operation)] != MF_OP_READ_REPLY ||                           \
     (data)[offsetof(struct mf_request, flags)] & MF_FLAG_LEADER_ONLY)

#include "shells.h"
