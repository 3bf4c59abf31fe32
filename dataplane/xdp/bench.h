/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Two benchmarks, run by BPF_PROG_RUN: of the core alone, and of mf_xdp with frames. Separate programs, which only `midflight-lab bench`
 * loads: they would take the verifier longer than all programs of a switch.
 *
 * The function for each packet is not static, so the verifier checks it once and not in each round of a loop.
 */
#ifndef MIDFLIGHT_BENCH_H
#define MIDFLIGHT_BENCH_H

#include "shells.h"

/* Handles the datagram at this place in the arena. Returns whether it was refused, neither taken nor forwarded. */
__attribute__((noinline)) int bench_packet(uint64_t at)
{
    const struct mf_datagram MF_FAR *packet = (const struct mf_datagram MF_FAR *)(uintptr_t)at;
    uint64_t now = MF_CONTROL->now_ns;
    if (!mf_lock())
        return 1;
    int is_refused = take(now, packet, &mf_scratch_of(0)->out) > MF_V_FORWARDED;
    mf_unlock();
    return is_refused;
}

/* Benchmarks the core. Writes the total time, including the lock, and the number of refused datagrams to the control block. */
SEC("xdp")
int mf_bench_packets(struct xdp_md *context)
{
    (void)context;
    MF_USES_ARENA();
    struct mf_control MF_FAR *control = MF_CONTROL;
    uint64_t at = control->bench_at, end = at + (uint64_t)control->bench_count * sizeof(struct mf_datagram);
    uint32_t refused = MF_ZERO;
    uint64_t started = bpf_ktime_get_ns();
    for (; MF_LOOP(at < end); at += sizeof(struct mf_datagram))
        refused += bench_packet(at);
    control->bench_ns = bpf_ktime_get_ns() - started;
    control->verdict = refused;
    return XDP_PASS;
}

#define BEGINNING (ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + 96) /* headers, and the first 96 bytes of the datagram */
#define BEGINNING_ROOM 144                                       /* distance of two in the arena, in bytes */
_Static_assert(BEGINNING % 8 == 2, "long words, and a half");

MF_INLINE int put_beginning(struct xdp_md *context, const uint8_t MF_FAR *beginning)
{
    uint8_t *data = (uint8_t *)(long)context->data, *end = (uint8_t *)(long)context->data_end;
    if (data + BEGINNING > end)
        return 0;
    _Pragma("unroll") for (uint32_t i = 0; i + 8 <= BEGINNING; i += 8)
        PUT_LONG(data + i, FAR_LONG(beginning + i));
    PUT_HALF(data + BEGINNING - 2, FAR_HALF(beginning + BEGINNING - 2));
    return 1;
}

__attribute__((noinline)) int bench_frame(struct xdp_md *context)
{
    return serve_frame(context);
}

/* Benchmarks mf_xdp with forwarded frames. All frames equal the one that it is run with except for their beginnings, which mf_xdp rewrites.
 * The beginnings are in the arena and are copied into the frame in turn. Writes to the control block the total time, and how many frames
 * did not leave by the XDP action `call`. With `call` 0, frames are only copied, to measure that part. */
SEC("xdp")
int mf_bench_frames(struct xdp_md *context)
{
    MF_USES_ARENA();
    struct mf_control MF_FAR *control = MF_CONTROL;
    const uint8_t MF_FAR *beginning = (const uint8_t MF_FAR *)(uintptr_t)control->bench_at;
    const uint8_t MF_FAR *end = beginning + (uint64_t)control->bench_count * BEGINNING_ROOM;
    uint32_t action = control->call, others = MF_ZERO;
    uint64_t started = bpf_ktime_get_ns();
    for (; MF_LOOP(beginning < end); beginning += BEGINNING_ROOM) {
        others += !put_beginning(context, beginning);
        if (action)
            others += bench_frame(context) != (int)action;
    }
    control->bench_ns = bpf_ktime_get_ns() - started;
    control->verdict = others;
    return XDP_PASS;
}

#endif
