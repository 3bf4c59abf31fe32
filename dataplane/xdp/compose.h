/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* From an answer of the core to a frame. */
#ifndef MIDFLIGHT_COMPOSE_H
#define MIDFLIGHT_COMPOSE_H

#include "parse.h"

#define HOPS 64 /* TTL, hop limit */

/* Where the IP header begins in a frame that goes this way, with the outermost `beside` tags not in it. */
MF_INLINE uint32_t ip_offset(const struct mf_way MF_FAR *way, uint32_t beside)
{
    return ETHERNET_BYTES + TAG_BYTES * (way->tags - beside);
}

MF_INLINE uint32_t ip_bytes(const struct mf_way MF_FAR *way)
{
    return way->type == TYPE_IPV4 ? IPV4_BYTES : IPV6_BYTES;
}

/* Bytes of the frame that brings a datagram of `length` bytes this way. */
MF_INLINE uint32_t frame_bytes(const struct mf_way MF_FAR *way, uint32_t beside, uint32_t length)
{
    return ip_offset(way, beside) + ip_bytes(way) + UDP_BYTES + length;
}

/* At least 22 bytes. */
MF_INLINE void put_ethernet(uint8_t *data, const struct mf_way MF_FAR *way, uint32_t beside)
{
    uint32_t tags = way->tags - beside;
    PUT_LONG(data, FAR_LONG(way->macs));
    PUT_WORD(data + 8, FAR_WORD(way->macs + 8));
    if (MF_LIKELY(tags == 0)) {
        PUT_HALF(data + 12, way->type);
        return;
    }
    PUT_WORD(data + 12, way->tag[beside & 1]);
    if (tags == 1) {
        PUT_HALF(data + 16, way->type);
        return;
    }
    PUT_WORD(data + 16, way->tag[1]);
    PUT_HALF(data + 20, way->type);
}

/* Returns the sum of the addresses. `bytes`: of UDP header and payload. */
MF_INLINE uint64_t put_ipv4(uint8_t *ip, const struct mf_way MF_FAR *way, uint32_t bytes)
{
    uint32_t own = FAR_WORD(way->own + 12), peer = FAR_WORD(way->peer.ip + 12);
    uint64_t sum = (uint64_t)own + peer;
    uint32_t first = IPV4_PLAIN | (uint32_t)mf_net16((uint16_t)(IPV4_BYTES + bytes)) << 16;
    uint32_t second = 0x40 << 16; /* not a fragment, and not to become one: needs no identification */
    uint32_t third = HOPS | IP_UDP << 8;
    PUT_WORD(ip, first);
    PUT_WORD(ip + 4, second);
    PUT_WORD(ip + 8, third | (uint32_t)(uint16_t)~sum_fold(sum + first + second + third) << 16);
    PUT_WORD(ip + 12, own);
    PUT_WORD(ip + 16, peer);
    return sum;
}

MF_INLINE uint64_t put_ipv6(uint8_t *ip, const struct mf_way MF_FAR *way, uint32_t bytes)
{
    uint64_t own_high = FAR_LONG(way->own), own_low = FAR_LONG(way->own + 8);
    uint64_t peer_high = FAR_LONG(way->peer.ip), peer_low = FAR_LONG(way->peer.ip + 8);
    PUT_LONG(ip, 0x60 | (uint64_t)mf_net16((uint16_t)bytes) << 32 | (uint64_t)IP_UDP << 48 | (uint64_t)HOPS << 56);
    PUT_LONG(ip + 8, own_high);
    PUT_LONG(ip + 16, own_low);
    PUT_LONG(ip + 24, peer_high);
    PUT_LONG(ip + 32, peer_low);
    return sum_long(sum_long(sum_long(sum_long(0, own_high), own_low), peer_high), peer_low);
}

/* The frame, which is frame_bytes() long and begins at `data`. `partial`: with the pseudo-header's sum for a checksum, to be
 * completed by who sends it. 0: the frame is shorter than that. */
MF_INLINE int compose(uint8_t *data, const uint8_t *end, const struct mf_way MF_FAR *way, uint32_t beside,
                      const struct mf_out_packet MF_FAR *packet, uint32_t partial)
{
    uint32_t l3 = HIDDEN_OFFSET(ip_offset(way, beside), 0x1f);
    uint32_t l4 = HIDDEN_OFFSET(l3 + ip_bytes(way), 0x7f);
    uint8_t *ip = data + l3, *udp = data + l4;
    uint32_t bytes = UDP_BYTES + packet->length, ports = MF_CONTROL->port | (uint32_t)packet->to.port << 16;
    uint64_t sum;
    if (data + ETHERNET_BYTES + TAG_BYTES * MF_TAGS_MAX > end || udp + UDP_BYTES > end)
        return 0;
    put_ethernet(data, way, beside);
    if (way->type == TYPE_IPV4) {
        if (ip + IPV4_BYTES > end)
            return 0;
        sum = put_ipv4(ip, way, bytes);
    } else {
        if (ip + IPV6_BYTES > end)
            return 0;
        sum = put_ipv6(ip, way, bytes);
    }
    uint32_t length = mf_net16((uint16_t)bytes), check;
    sum += (IP_UDP << 8) + length;
    check = sum_fold(sum);
    sum += (uint64_t)ports + length;
    if (!copy_out(udp + UDP_BYTES, end, packet->data, packet->length, &sum))
        return 0;
    if (!partial) {
        check = (uint16_t)~sum_fold(sum);
        check = check ? check : 0xffff;
    }
    PUT_WORD(udp, ports);
    PUT_WORD(udp + 4, length | check << 16);
    return 1;
}

#endif
