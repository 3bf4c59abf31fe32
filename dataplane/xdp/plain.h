/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The fast path through XDP for the most frequent frames: IPv4 without VLAN tags, with a datagram that the program decides by its header.
 * All offsets are constants, one comparison bounds the frame, and nothing loops. It does the same as parse.h and compose.h, byte for byte,
 * and leaves unusual frames to them before it counts anything.
 */
#ifndef MIDFLIGHT_PLAIN_H
#define MIDFLIGHT_PLAIN_H

#include "compose.h"

enum plain {
    PLAIN_IP = ETHERNET_BYTES,
    PLAIN_UDP = PLAIN_IP + IPV4_BYTES,
    PLAIN_DATAGRAM = PLAIN_UDP + UDP_BYTES,
    PLAIN_BYTES = PLAIN_DATAGRAM + PROGRAM_HEADER_BYTES
};

/* `tags` and `type` of such a frame's next hop, as one word. */
#define PLAIN_SHAPE ((uint32_t)TYPE_IPV4 << 16)

MF_INLINE uint32_t shape_of(const struct mf_next_hop MF_FAR *hop)
{
    return FAR_WORD(&hop->tags);
}

/* Whether the switch serves the destination, and certainly not the source. Compares as many addresses as one round of the loop in
 * parse.h. */
MF_INLINE int is_served_plainly(uint64_t to, uint64_t from)
{
    const struct mf_address MF_FAR *address = MF_CONTROL->address;
    uint64_t is_served = MF_ZERO;
    /* 0: user space is writing them, and the source may be one that is missing yet. */
    if ((uint32_t)MF_CONTROL->addresses - 1 >= ADDRESSES_A_ROUND)
        return 0;
    _Pragma("unroll") for (uint32_t k = 0; k < ADDRESSES_A_ROUND; k++)
    {
        uint64_t low = FAR_LONG(address[k].ip + 8);
        if (low == from)
            return 0;
        if (low == to && FAR_LONG(address[k].ip + 0) == 0)
            is_served = 1;
    }
    return is_served != 0;
}

/* Copies the frame's datagram to the scratch area, as receive() does. 0: not such a frame. */
MF_INLINE int receive_plain(const uint8_t *data, const uint8_t *end, uint32_t interface, struct mf_scratch MF_FAR *scratch)
{
    const uint8_t *ip = data + PLAIN_IP, *udp = data + PLAIN_UDP, *datagram = data + PLAIN_DATAGRAM;
    if (!PROGRAM_HEADER_BYTES || data + PLAIN_BYTES > end)
        return 0;
    uint32_t ports = WORD_AT(udp);
    if ((WORD_AT(data + ETHERNET_TYPE) & 0xffffff) != (TYPE_IPV4 | IPV4_PLAIN << 16) || ip[IPV4_PROTOCOL] != IP_UDP ||
        ports >> 16 != MF_CONTROL->port || !(ports & 0xffff) || (HALF_AT(ip + IPV4_FRAGMENT) & FRAGMENT) ||
        !PROGRAM_DECIDES_BY_HEADER(datagram[offsetof(struct mf_header, operation)]))
        return 0;
    uint64_t first = LONG_AT(data), second = WORD_AT(data + 8);
    uint64_t from = WORD_AT(ip + IPV4_SOURCE), to = WORD_AT(ip + IPV4_DESTINATION), sum = from + to;
    if (((first | first >> 48) & 1) || !may_send_ipv4((uint32_t)from) || !is_served_plainly(MAPPED(to), MAPPED(from)))
        return 0;
    uint32_t bytes = mf_net16(HALF_AT(udp + UDP_LENGTH)), length = bytes - UDP_BYTES, check = HALF_AT(udp + UDP_CHECKSUM);
    if (bytes < UDP_BYTES + PROGRAM_HEADER_BYTES || length > MF_PACKET_MAX ||
        mf_net16(HALF_AT(ip + IPV4_LENGTH)) != IPV4_BYTES + bytes || datagram + MF_MASK(length, 0x7ff) > end ||
        sum_fold(sum + WORD_AT(ip) + WORD_AT(ip + 4) + WORD_AT(ip + 8)) != 0xffff ||
        sum_fold(sum + (IP_UDP << 8) + HALF_AT(udp + UDP_LENGTH)) == check)
        return 0;
    note_addresses(scratch, 0, MAPPED(from), 0, MAPPED(to));
    uint64_t port = ports & 0xffff;
    FAR_LONG(&scratch->in.from.port) = port | (uint64_t)length << 32;
    FAR_LONG(&scratch->back.peer.port) = port | (uint64_t)interface << 32;
    FAR_LONG(scratch->back.macs) = first >> 48 | second << 16 | first << 48;
    FAR_LONG(scratch->back.macs + 8) = (uint32_t)(first >> 16) | (uint64_t)PLAIN_SHAPE << 32;
    scratch->in.data = scratch->data;
    scratch->is_whole = 1;
    scratch->copied = PROGRAM_HEADER_BYTES;
    _Pragma("unroll") for (uint32_t i = 0; i < PROGRAM_HEADER_BYTES; i += sizeof(mf_long))
        FAR_LONG(scratch->data + i) = LONG_AT(datagram + i);
    return 1;
}

/* rewrite() for a frame of receive_plain() whose next hop takes such frames. */
MF_INLINE int rewrite_plain(uint8_t *data, const uint8_t *end, const struct mf_scratch MF_FAR *scratch)
{
    const struct mf_next_hop MF_FAR *hop = &scratch->other;
    uint8_t *udp = data + PLAIN_UDP;
    struct difference change = {0, 0};
    if (data + PLAIN_BYTES > end)
        return 0;
    uint64_t before = (uint64_t)WORD_AT(data + PLAIN_IP + IPV4_SOURCE) + WORD_AT(data + PLAIN_IP + IPV4_DESTINATION) + WORD_AT(udp);
    uint32_t ports = ports_to(&hop->peer), check = HALF_AT(udp + UDP_CHECKSUM);
    PUT_LONG(data, FAR_LONG(hop->macs));
    PUT_WORD(data + 8, FAR_WORD(hop->macs + 8));
    uint64_t after = put_ipv4(data + PLAIN_IP, hop, UDP_BYTES + scratch->in.length) + ports;
    replace_header(data + PLAIN_DATAGRAM, end, scratch->data, &change);
    if (check) {
        check = (uint16_t)~sum_fold((uint64_t)(uint16_t)~check + sum_of_difference(&change) + after - before);
        PUT_HALF(udp + UDP_CHECKSUM, check ? check : 0xffff);
    }
    PUT_WORD(udp, ports);
    return 1;
}

#endif
