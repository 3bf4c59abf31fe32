/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The entry point for user space: BPF_PROG_RUN runs it, the control block says what to do. */
#ifndef MIDFLIGHT_CALL_H
#define MIDFLIGHT_CALL_H

#include "next_hops.h"

/* Not inlined: otherwise its variables would be on the stack of mf_call. */
static __attribute__((noinline)) void call_packet(struct mf_scratch MF_FAR *scratch)
{
    MF_CONTROL->verdict = take_from_socket(scratch);
    scratch->counts.called++;
}

/* BPF_PROG_RUN requires a frame for an XDP program; it is not used. */
SEC("xdp")
int mf_call(struct xdp_md *context)
{
    struct mf_control MF_FAR *control = MF_CONTROL;
    struct mf_scratch MF_FAR *scratch = mf_scratch_of(0);
    (void)context;
    MF_USES_ARENA();
    if (!mf_lock())
        return XDP_ABORTED;
    if (control->call == MF_CALL_TICK)
        control->verdict = take_tick(now_ns(), &scratch->out);
    else if (control->call == MF_CALL_ORDER)
        control->verdict = take_order(control->order);
    else
        call_packet(scratch);
    mf_unlock();
    return XDP_PASS;
}

#endif
