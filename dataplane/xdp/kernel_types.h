/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Fields of the kernel's structures that these programs read. libbpf adapts their offsets to the running kernel (CO-RE), so only the names
 * matter, and they are the kernel's.
 */
#ifndef MIDFLIGHT_KERNEL_TYPES_H
#define MIDFLIGHT_KERNEL_TYPES_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#include "midflight/switch.h"

#define MF_OF_KERNEL __attribute__((preserve_access_index))

struct xdp_buff {
    void *data;
    void *data_end;
    void *data_meta;
    void *data_hard_start;
    uint32_t frame_sz;
} MF_OF_KERNEL;

struct xdp_frame {
    void *data;
} MF_OF_KERNEL;

struct skb_shared_info {
    uint8_t nr_frags;
} MF_OF_KERNEL;

struct sk_buff {
    uint8_t ip_summed : 2;
} MF_OF_KERNEL;

/* Returns the kernel's structure behind a program's context. The verifier replaces the call by an instruction. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym;

#endif
