/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The maps, as libbpf reads them. User space sets the arena's size and address before it loads the object. */
#ifndef MIDFLIGHT_MAPS_H
#define MIDFLIGHT_MAPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "arena.h"

#define MF_MAP_TYPE_ARENA 33 /* BPF_MAP_TYPE_ARENA, which a stable distribution's headers may lack */

struct {
    __uint(type, MF_MAP_TYPE_ARENA);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
} arena SEC(".maps");

/* A datagram for the process to send by its socket. */
struct mf_handover {
    struct mf_address to;
    uint32_t length;
    uint8_t own[16]; /* source: our address that the receiver talks to; zeros if unknown */
    uint8_t data[MF_PACKET_MAX];
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} handover SEC(".maps");

/* The verifier lets a program use the arena only if its code mentions the map. */
#define MF_USES_ARENA() __asm__ volatile("" ::"r"(&arena))

#endif
