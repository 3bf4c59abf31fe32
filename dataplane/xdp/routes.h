/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Next hops from the kernel's routes and neighbours, for peers without an entry in the cache, such as a server that never talks to the
 * switch itself. The kernel answers only if forwarding is allowed and it knows the neighbour; until then the process sends, which resolves
 * the neighbour.
 */
#ifndef MIDFLIGHT_ROUTES_H
#define MIDFLIGHT_ROUTES_H

#include "compose.h"
#include "kernel_types.h"

#define FAMILY_IPV4 2
#define FAMILY_IPV6 10

MF_INLINE uint16_t type_of(const struct mf_address MF_FAR *address)
{
    int is_ipv4 = FAR_LONG(address->ip) == 0 && FAR_WORD(address->ip + 8) == (uint32_t)MAPPED(0);
    return is_ipv4 ? TYPE_IPV4 : TYPE_IPV6;
}

/* Writes the next hop of a datagram of `length` bytes to the scratch area (`other`); 0 if the kernel has none. `context`: the packet, which
 * came by this interface. Frames get the address that it was sent to as source. */
static __attribute__((noinline)) int routed_hop(void *context, uint32_t interface, struct mf_scratch MF_FAR *scratch,
                                                const struct mf_address MF_FAR *to, uint32_t length)
{
    struct mf_next_hop MF_FAR *hop = &scratch->other;
    struct bpf_fib_lookup ask = {.l4_protocol = IP_UDP, .ifindex = interface};
    copy_hop(hop, &scratch->back);
    MF_COPY(&hop->peer, to);
    hop->type = type_of(to);
    hop->tags = 0;
    ask.tot_len = (uint16_t)(ip_bytes(hop) + UDP_BYTES + length);
    if (hop->type == TYPE_IPV4) {
        ask.family = FAMILY_IPV4;
        ask.ipv4_src = FAR_WORD(hop->own + 12);
        ask.ipv4_dst = FAR_WORD(hop->peer.ip + 12);
    } else {
        ask.family = FAMILY_IPV6;
        _Pragma("unroll") for (uint32_t i = 0; i < 4; i++)
        {
            ask.ipv6_src[i] = FAR_WORD(hop->own + 4 * i);
            ask.ipv6_dst[i] = FAR_WORD(hop->peer.ip + 4 * i);
        }
    }
    if (bpf_fib_lookup(context, &ask, sizeof(ask), 0) != BPF_FIB_LKUP_RET_SUCCESS)
        return 0;
    hop->interface = ask.ifindex;
    _Pragma("unroll") for (uint32_t i = 0; i < 6; i += 2)
    {
        FAR_HALF(hop->macs + i) = HALF_AT(ask.dmac + i);
        FAR_HALF(hop->macs + 6 + i) = HALF_AT(ask.smac + i);
    }
    return 1;
}

#endif
