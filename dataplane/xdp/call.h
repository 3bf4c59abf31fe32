/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The entry point for user space, which runs it by BPF_PROG_RUN and says in the control block what it wants. */
#ifndef MIDFLIGHT_CALL_H
#define MIDFLIGHT_CALL_H

#include "next_hops.h"

static __attribute__((noinline)) void call_bench(struct mf_scratch MF_FAR *scratch)
{
    struct mf_control MF_FAR *control = MF_CONTROL;
    const struct mf_datagram MF_FAR *packet = (const struct mf_datagram MF_FAR *)(uintptr_t)control->bench_at;
    const struct mf_datagram MF_FAR *end = packet + control->bench_count;
    uint64_t started = bpf_ktime_get_ns(), now = control->now_ns;
    uint32_t refused = MF_ZERO;
    for (; MF_LOOP(packet < end); packet++) {
        if (!mf_lock())
            break;
        refused += take(now, packet, &scratch->out) > MF_V_FORWARDED; /* not OK, and not forwarded */
        mf_unlock();
    }
    control->bench_ns = bpf_ktime_get_ns() - started;
    control->verdict = refused;
}

/* This and the benchmark are not inlined: otherwise the stack of mf_call would hold the variables of both. */
static __attribute__((noinline)) void call_packet(struct mf_scratch MF_FAR *scratch)
{
    MF_CONTROL->verdict = take_from_socket(scratch);
    scratch->counts.called++;
}

/* BPF_PROG_RUN wants a frame for an XDP program; it is not used. */
SEC("xdp")
int mf_call(struct xdp_md *context)
{
    struct mf_control MF_FAR *control = MF_CONTROL;
    struct mf_scratch MF_FAR *scratch = mf_scratch_of(0);
    (void)context;
    MF_USES_ARENA();
    if (control->call == MF_CALL_BENCH) {
        call_bench(scratch);
        return XDP_PASS;
    }
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
