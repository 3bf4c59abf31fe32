// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The tasks program in the kernel: the core of src/, and the shells that bring it packets.
 *
 *   mf_xdp    datagrams that owe at most one answer
 *   mf_tc     those that XDP passed on because they may owe several
 *   mf_call   user space calls the core: a datagram that came by a socket, a tick, a benchmark
 */
#include "maps.h"

#include "lock.h"

#include "../src/tasks.c"

char _license[] SEC("license") = "Dual MIT/GPL";

/* The core as a function of its own: what calls it has registers and stack of its own too. */
static __attribute__((noinline)) enum mf_verdict take(uint64_t now_ns, const struct mf_datagram MF_FAR *in,
                                                      struct mf_out MF_FAR *out)
{
    return mf_tasks_packet(mf_state(), now_ns, in, out);
}

static __attribute__((noinline)) uint32_t take_tick(uint64_t now_ns, struct mf_out MF_FAR *out)
{
    return mf_tasks_tick(mf_state(), now_ns, out);
}

static __attribute__((noinline)) void call_bench(struct mf_desk MF_FAR *desk)
{
    struct mf_control MF_FAR *control = MF_CONTROL;
    const struct mf_datagram MF_FAR *packets = (const struct mf_datagram MF_FAR *)(uintptr_t)control->bench_at;
    uint64_t started = bpf_ktime_get_ns(), now = control->now_ns;
    uint32_t refused = 0, count = control->bench_count;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < count); i++) {
        if (!mf_lock())
            break;
        refused += take(now, &packets[i], &desk->out) != MF_V_OK;
        mf_unlock();
    }
    control->bench_ns = bpf_ktime_get_ns() - started;
    control->verdict = refused;
}

/* What user space asks, by BPF_PROG_RUN: the frame that comes with it means nothing. */
SEC("xdp")
int mf_call(struct xdp_md *context)
{
    struct mf_control MF_FAR *control = MF_CONTROL;
    struct mf_desk MF_FAR *desk = mf_desk_of(0);
    uint64_t now = control->now_ns == MF_NOW ? bpf_ktime_get_ns() : control->now_ns;
    (void)context;
    MF_USES_ARENA();
    if (control->call == MF_CALL_BENCH) {
        call_bench(desk);
        return XDP_PASS;
    }
    if (!mf_lock())
        return XDP_ABORTED;
    if (control->call == MF_CALL_TICK) {
        control->verdict = take_tick(now, &desk->out);
    } else {
        desk->counts.called++;
        control->verdict = take(now, &desk->in, &desk->out);
    }
    mf_unlock();
    return XDP_PASS;
}

SEC("xdp")
int mf_xdp(struct xdp_md *context)
{
    (void)context;
    return XDP_PASS;
}

SEC("tcx/ingress")
int mf_tc(struct __sk_buff *context)
{
    (void)context;
    return -1; /* TCX_NEXT */
}
