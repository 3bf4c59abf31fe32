/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Counts frames left to the kernel's stack that may be for the switch: fragments, IP options and extension headers. The counts show an
 * operator why packets take the slow path.
 */
#ifndef MIDFLIGHT_ODD_H
#define MIDFLIGHT_ODD_H

#include "parse.h"

#define EXTENSIONS_MAX 4 /* extension headers skipped to find UDP */

/* Whether a UDP header at this offset of a frame names our port; 0 also beyond the frame's end. */
MF_INLINE int names_port(const uint8_t *data, const uint8_t *end, uint32_t at)
{
    const uint8_t *udp = data + HIDDEN_OFFSET(at, 0x3ff);
    return udp + UDP_BYTES <= end && HALF_AT(udp + UDP_DESTINATION_PORT) == MF_CONTROL->port;
}

/* Only a datagram's first fragment has a port; a later one counts if the switch serves its destination. */
static __attribute__((noinline)) void count_odd_ipv4(const uint8_t *data, const uint8_t *end, uint32_t at,
                                                     struct mf_shell_counts MF_FAR *counts)
{
    const uint8_t *ip = data + MF_MASK(at, 0x1f);
    if (ip + IPV4_BYTES > end || !is_served_ipv4(WORD_AT(ip + IPV4_DESTINATION)))
        return;
    uint32_t fragment = HALF_AT(ip + IPV4_FRAGMENT), header = 4u * (ip[0] & 0xf);
    if (header < IPV4_BYTES || (!(fragment & FRAGMENT_OFFSET) && !names_port(data, end, at + header)))
        return;
    if (fragment & FRAGMENT)
        counts->passed_fragment++;
    else
        counts->passed_options++;
}

/* The same for IPv6, whose fragments and options are extension headers. */
static __attribute__((noinline)) void count_odd_ipv6(const uint8_t *data, const uint8_t *end, uint32_t at,
                                                     struct mf_shell_counts MF_FAR *counts)
{
    const uint8_t *ip = data + MF_MASK(at, 0x1f);
    if (ip + IPV6_BYTES > end || !is_served_ipv6(ip + IPV6_DESTINATION))
        return;
    uint32_t next = ip[IPV6_NEXT], fragment = 0, offset = 0;
    at = HIDDEN_OFFSET(at + IPV6_BYTES, 0x3ff);
    for (uint32_t k = MF_ZERO; MF_LOOP(k < EXTENSIONS_MAX && is_extension(next) && !offset); k++) {
        const uint8_t *header = data + at;
        if (header + 8 > end)
            return;
        if (next == FRAGMENTED) {
            fragment = 1;
            offset = HALF_AT(header + 2) & 0xf8ff;
        }
        at = HIDDEN_OFFSET(at + (next == FRAGMENTED ? 8 : 8 * (1u + header[1])), 0x3ff);
        next = header[0];
    }
    if (next != IP_UDP || (!offset && !names_port(data, end, at)))
        return;
    if (fragment)
        counts->passed_fragment++;
    else
        counts->passed_options++;
}

#endif
