/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * A benchmark of what mf_xdp does with frames that are forwarded. User space runs it by BPF_PROG_RUN with one frame. All frames of
 * the benchmark are equal to it but for their beginnings, which are what the shell rewrites: they lie in the arena, and are put
 * into the frame one after the other.
 */
#ifndef MIDFLIGHT_BENCH_H
#define MIDFLIGHT_BENCH_H

#include "shells.h"

#define BEGINNING (ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + 96) /* headers, and the first 96 bytes of the datagram */
#define BEGINNING_ROOM 144                                       /* bytes from one to the next */
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

/* Not static: so the verifier checks it once, and not in each round of a loop. */
__attribute__((noinline)) int bench_frame(struct xdp_md *context)
{
    return serve_frame(context);
}

/* The time that all frames take goes to the control block, and how many did not leave as `call` says, an XDP action; 0: the frames
 * are only put in their place, which tells how much of the time that costs. */
SEC("xdp")
int mf_bench(struct xdp_md *context)
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
