// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The tasks program in the kernel: the core of src/, and the shells that bring it packets.
 *
 *   mf_call   user space calls the core: a datagram that came by a socket, a tick, a benchmark
 */
#include "maps.h"

#include "lock.h"

#include "../src/tasks.c"

char _license[] SEC("license") = "Dual MIT/GPL";

static void call_bench(struct mf_desk MF_FAR *desk)
{
    struct mf_control MF_FAR *control = MF_CONTROL;
    const struct mf_datagram MF_FAR *packets = (const struct mf_datagram MF_FAR *)(uintptr_t)control->bench_at;
    uint64_t started = bpf_ktime_get_ns(), now = control->now_ns;
    uint32_t refused = 0, count = control->bench_count;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < count); i++) {
        if (!mf_lock())
            break;
        refused += mf_tasks_packet(MF_STATE, now, &packets[i], &desk->out) != MF_V_OK;
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
    uint64_t now = control->now_ns ? control->now_ns : bpf_ktime_get_ns();
    (void)context;
    MF_USES_ARENA();
    if (control->call == MF_CALL_BENCH) {
        call_bench(desk);
        return XDP_PASS;
    }
    if (!mf_lock())
        return XDP_ABORTED;
    if (control->call == MF_CALL_TICK) {
        control->verdict = mf_tasks_tick(MF_STATE, now, &desk->out);
    } else {
        desk->counts.called++;
        control->verdict = mf_tasks_packet(MF_STATE, now, &desk->in, &desk->out);
    }
    mf_unlock();
    return XDP_PASS;
}
