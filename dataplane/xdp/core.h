/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The core. All handlers but the most frequent one are functions of their own; what leads to them is part of each program. */
#ifndef MIDFLIGHT_XDP_CORE_H
#define MIDFLIGHT_XDP_CORE_H

#include "maps.h"

#include "lock.h"

#include "../src/tasks.c"

MF_INLINE enum mf_verdict take(uint64_t now_ns, const struct mf_datagram MF_FAR *in, struct mf_out MF_FAR *out)
{
    return mf_tasks_packet(mf_state(), now_ns, in, out);
}

static __attribute__((noinline)) uint32_t take_tick(uint64_t now_ns, struct mf_out MF_FAR *out)
{
    return mf_tasks_tick(mf_state(), now_ns, out);
}

static __attribute__((noinline)) uint32_t take_purge(struct mf_purge MF_FAR *purge)
{
    return mf_tasks_purge(mf_state(), purge);
}

/* To be asked under the lock: the core's time never goes back. */
MF_INLINE uint64_t now_ns(void)
{
    uint64_t made_up = MF_CONTROL->now_ns;
    return MF_LIKELY(made_up == MF_NOW) ? bpf_ktime_get_ns() : made_up;
}

#endif
