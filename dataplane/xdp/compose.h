/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Makes the frame that carries a datagram to a next hop: composes one for an answer, rewrites one in place for a forwarded datagram.
 *
 * `beside`, 0 or 1: number of VLAN tags that the kernel keeps in the skb instead of the frame.
 */
#ifndef MIDFLIGHT_COMPOSE_H
#define MIDFLIGHT_COMPOSE_H

#include "parse.h"

#define HOPS 64 /* TTL, hop limit */

/* Offset of the IP header in a frame to this next hop. */
MF_INLINE uint32_t ip_offset(const struct mf_next_hop MF_FAR *hop, uint32_t beside)
{
    return ETHERNET_BYTES + TAG_BYTES * (hop->tags - beside);
}

MF_INLINE uint32_t ip_bytes(const struct mf_next_hop MF_FAR *hop)
{
    return hop->type == TYPE_IPV4 ? IPV4_BYTES : IPV6_BYTES;
}

/* Bytes of the frame that carries a datagram of `length` bytes to this next hop. */
MF_INLINE uint32_t frame_bytes(const struct mf_next_hop MF_FAR *hop, uint32_t beside, uint32_t length)
{
    return ip_offset(hop, beside) + ip_bytes(hop) + UDP_BYTES + length;
}

/* Writes at most 22 bytes. */
MF_INLINE void put_ethernet(uint8_t *data, const struct mf_next_hop MF_FAR *hop, uint32_t beside)
{
    uint32_t tags = hop->tags - beside;
    PUT_LONG(data, FAR_LONG(hop->macs));
    PUT_WORD(data + 8, FAR_WORD(hop->macs + 8));
    if (MF_LIKELY(tags == 0)) {
        PUT_HALF(data + ETHERNET_TYPE, hop->type);
        return;
    }
    PUT_WORD(data + ETHERNET_TYPE, hop->tag[beside & 1]);
    if (tags == 1) {
        PUT_HALF(data + 16, hop->type);
        return;
    }
    PUT_WORD(data + 16, hop->tag[1]);
    PUT_HALF(data + 20, hop->type);
}

/* `bytes`: of UDP header and payload. Returns the sum of the addresses. */
MF_INLINE uint64_t put_ipv4(uint8_t *ip, const struct mf_next_hop MF_FAR *hop, uint32_t bytes)
{
    uint32_t own = FAR_WORD(hop->own + 12), peer = FAR_WORD(hop->peer.ip + 12);
    uint64_t sum = (uint64_t)own + peer;
    uint32_t first = IPV4_PLAIN | (uint32_t)mf_net16((uint16_t)(IPV4_BYTES + bytes)) << 16;
    uint32_t second = 0x40 << 16; /* "don't fragment": allows an identification of 0 */
    uint32_t third = HOPS | IP_UDP << 8;
    PUT_WORD(ip, first);
    PUT_WORD(ip + 4, second);
    PUT_WORD(ip + 8, third | (uint32_t)(uint16_t)~sum_fold(sum + first + second + third) << 16);
    PUT_WORD(ip + IPV4_SOURCE, own);
    PUT_WORD(ip + IPV4_DESTINATION, peer);
    return sum;
}

MF_INLINE uint64_t put_ipv6(uint8_t *ip, const struct mf_next_hop MF_FAR *hop, uint32_t bytes)
{
    uint64_t own_high = FAR_LONG(hop->own), own_low = FAR_LONG(hop->own + 8);
    uint64_t peer_high = FAR_LONG(hop->peer.ip), peer_low = FAR_LONG(hop->peer.ip + 8);
    PUT_LONG(ip, 0x60 | (uint64_t)mf_net16((uint16_t)bytes) << 32 | (uint64_t)IP_UDP << 48 | (uint64_t)HOPS << 56);
    PUT_LONG(ip + IPV6_SOURCE, own_high);
    PUT_LONG(ip + IPV6_SOURCE + 8, own_low);
    PUT_LONG(ip + IPV6_DESTINATION, peer_high);
    PUT_LONG(ip + IPV6_DESTINATION + 8, peer_low);
    return sum_long(sum_long(sum_long(sum_long(0, own_high), own_low), peer_high), peer_low);
}

/* Writes the Ethernet and IP headers of a frame with `bytes` of UDP header and payload, and sets `udp` to the UDP header's place. Returns
 * the sum of the addresses; -1: the frame is too short. */
MF_INLINE int64_t put_headers(uint8_t *data, const uint8_t *end, const struct mf_next_hop MF_FAR *hop, uint32_t beside,
                              uint32_t bytes, uint8_t **udp)
{
    uint32_t l3 = HIDDEN_OFFSET(ip_offset(hop, beside), 0x1f);
    uint32_t l4 = HIDDEN_OFFSET(l3 + ip_bytes(hop), 0x7f);
    uint8_t *ip = data + l3;
    *udp = data + l4;
    if (data + ETHERNET_BYTES + TAG_BYTES * MF_TAGS_MAX > end || *udp + UDP_BYTES > end)
        return -1;
    put_ethernet(data, hop, beside);
    if (hop->type == TYPE_IPV4)
        return ip + IPV4_BYTES > end ? -1 : (int64_t)put_ipv4(ip, hop, bytes);
    return ip + IPV6_BYTES > end ? -1 : (int64_t)put_ipv6(ip, hop, bytes);
}

struct outgoing {
    const struct mf_address MF_FAR *to;
    const uint8_t MF_FAR *data;
    uint32_t length;
};

/* The first word of a UDP header: from our port to the port of an address. */
MF_INLINE uint32_t ports_to(const struct mf_address MF_FAR *to)
{
    return MF_CONTROL->port | (uint32_t)to->port << 16;
}

/* Writes a frame of frame_bytes() at `data`. `partial`: writes only the pseudo-header's sum as checksum, which the card or the kernel
 * completes. 0: the frame is too short. */
MF_INLINE int compose(uint8_t *data, const uint8_t *end, const struct mf_next_hop MF_FAR *hop, uint32_t beside,
                      const struct outgoing *outgoing, uint32_t partial)
{
    uint32_t bytes = UDP_BYTES + outgoing->length, ports = ports_to(outgoing->to);
    uint32_t length = mf_net16((uint16_t)bytes), check;
    uint8_t *udp;
    int64_t addresses = put_headers(data, end, hop, beside, bytes, &udp);
    if (addresses < 0)
        return 0;
    uint64_t sum = (uint64_t)addresses + (IP_UDP << 8) + length;
    check = sum_fold(sum);
    sum += (uint64_t)ports + length;
    if (!copy_out(udp + UDP_BYTES, end, outgoing->data, outgoing->length, &sum))
        return 0;
    if (!partial) {
        check = (uint16_t)~sum_fold(sum);
        check = check || MF_MUTANT(63) ? check : 0xffff; /* planted bug: a checksum of zero, which means none */
    }
    PUT_WORD(udp, ports);
    PUT_WORD(udp + UDP_LENGTH, length | check << 16);
    return 1;
}

/* The sum of the addresses of a frame that came from this hop. */
MF_INLINE uint64_t address_sum(const struct mf_next_hop MF_FAR *hop)
{
    uint64_t sum = (uint64_t)FAR_WORD(hop->own + 12) + FAR_WORD(hop->peer.ip + 12);
    if (hop->type == TYPE_IPV4)
        return sum;
    _Pragma("unroll") for (uint32_t i = 0; i < 12; i += 4)
        sum += (uint64_t)FAR_WORD(hop->own + i) + FAR_WORD(hop->peer.ip + i);
    return sum;
}

/* replace() for PROGRAM_HEADER_BYTES, without a loop. */
MF_INLINE int replace_header(uint8_t *p, const uint8_t *end, const uint8_t MF_FAR *from, struct difference *sum)
{
    if (p + PROGRAM_HEADER_BYTES > end)
        return 0;
    _Pragma("unroll") for (uint32_t i = 0; i < PROGRAM_HEADER_BYTES; i += sizeof(mf_long))
    {
        uint64_t old = LONG_AT(p + i), new = FAR_LONG(from + i);
        PUT_LONG(p + i, new);
        replace_in_sum(sum, old, new);
    }
    return 1;
}

/* Forwards a datagram in its own frame: writes the new addresses and ports, and the first `header` bytes as the program has changed them.
 * The rest of the payload stays. The checksum changes by the difference (RFC 1624), so the receiver still detects earlier damage; a
 * checksum left to hardware is completed. 0: the frame is too short. */
MF_INLINE int rewrite(uint8_t *data, const uint8_t *end, const struct mf_scratch MF_FAR *scratch)
{
    const struct mf_next_hop MF_FAR *hop = &scratch->other;
    const struct mf_forward MF_FAR *forward = &scratch->out.forward;
    uint32_t ports = ports_to(&forward->to);
    uint8_t *udp;
    int64_t addresses = put_headers(data, end, hop, 0, UDP_BYTES + forward->length, &udp);
    if (addresses < 0)
        return 0;
    struct difference sum = {0, 0};
    int is_header = PROGRAM_HEADER_BYTES && forward->header == PROGRAM_HEADER_BYTES;
    if (MF_LIKELY(is_header) ? !replace_header(udp + UDP_BYTES, end, scratch->data, &sum)
                             : !replace(udp + UDP_BYTES, end, scratch->data, forward->header, &sum))
        return 0;
    uint64_t change = sum_of_difference(&sum) + (uint64_t)addresses + ports - address_sum(&scratch->back) - WORD_AT(udp);
    uint32_t check = scratch->is_whole ? HALF_AT(udp + UDP_CHECKSUM) : scratch->whole_check;
    if (check || !scratch->is_whole) {
        check = (uint16_t)~sum_fold((uint64_t)(uint16_t)~check + change);
        PUT_HALF(udp + UDP_CHECKSUM, check ? check : 0xffff);
    }
    PUT_WORD(udp, ports);
    return 1;
}

/* Whether a frame from one hop can be rewritten for the other: both have the same kinds of headers. */
MF_INLINE int is_same_shape(const struct mf_next_hop MF_FAR *a, const struct mf_next_hop MF_FAR *b)
{
    if (a->type != b->type || a->tags != b->tags)
        return 0;
    if (MF_MUTANT(71)) /* planted bug: compares only the number of tags */
        return 1;
    return MF_LIKELY(a->tags == 0) || (a->tag[0] == b->tag[0] && (a->tags == 1 || a->tag[1] == b->tag[1]));
}

/* Whether a forwarding program respects the limits in switch.h. */
MF_INLINE int may_forward(const struct mf_scratch MF_FAR *scratch)
{
    const struct mf_forward MF_FAR *forward = &scratch->out.forward;
    return scratch->out.count == 0 && forward->header % sizeof(mf_word) == 0 && forward->header <= forward->length &&
           forward->length <= scratch->in.length;
}

#endif
