/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Copies a frame's datagram to the scratch area.
 *
 *   find_ip   skips the VLAN tags, to IPv4 or IPv6
 *   is_ours   whether it is UDP to the switch's port, at an address that it serves
 *   receive   checks lengths and checksum, copies the datagram, and stores the next hop back to its sender
 *
 * Most frames are not for the switch, so the checks that exclude them come first.
 */
#ifndef MIDFLIGHT_PARSE_H
#define MIDFLIGHT_PARSE_H

#include "core.h"
#include "words.h"

/* EtherTypes, in network byte order. */
#define TYPE_IPV4 0x0008
#define TYPE_IPV6 0xdd86
#define TYPE_8021Q 0x0081
#define TYPE_8021AD 0xa888

#define ETHERNET_BYTES 14
#define TAG_BYTES 4
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define IPV4_PLAIN 0x45 /* version 4, no options */
#define IP_UDP 17
#define FRAGMENT_OFFSET 0xff1f /* of IPv4's third half-word, network byte order */
#define FRAGMENT 0xff3f        /* the same with the bit "more fragments" */

/* Field offsets in bytes from the start of their header. */
enum ethernet_field { ETHERNET_TYPE = 12, TAGGED_TYPE = 2 /* from the start of a VLAN tag */ };
enum ipv4_field {
    IPV4_LENGTH = 2,
    IPV4_FRAGMENT = 6,
    IPV4_PROTOCOL = 9,
    IPV4_SOURCE = 12,
    IPV4_DESTINATION = 16
};
enum ipv6_field { IPV6_LENGTH = 4, IPV6_NEXT = 6, IPV6_SOURCE = 8, IPV6_DESTINATION = 24 };
enum udp_field { UDP_SOURCE_PORT = 0, UDP_DESTINATION_PORT = 2, UDP_LENGTH = 4, UDP_CHECKSUM = 6 };

struct frame {
    uint32_t interface; /* ingress interface, set by the caller of receive */

    /* Set by find_ip. */
    uint32_t l3;   /* offset of the IP header */
    uint32_t tags; /* VLAN tags in the frame, without one that the kernel keeps in the skb */
    uint16_t type; /* TYPE_IPV4 or TYPE_IPV6 */

    /* Set by receive. */
    uint16_t check;  /* its UDP checksum */
    uint32_t l4;     /* offset of the UDP header */
    uint32_t whole;  /* 0: the checksum is the pseudo-header's sum only; 1: it is right, absent, or was not checked */
    uint64_t pseudo; /* sum of the pseudo-header, not folded */
};

/* Hides a header's offset from the verifier, which would otherwise follow each possible value through the whole program. */
#define HIDDEN_OFFSET(offset, mask) MF_MASK((offset) + MF_ZERO, mask)

/* 0: no IP. Skips one tag more than allowed, so that such frames can be counted. */
MF_INLINE int find_ip(const uint8_t *data, const uint8_t *end, struct frame *frame)
{
    uint32_t at = ETHERNET_BYTES, tags = 0;
    if (data + ETHERNET_BYTES > end)
        return 0;
    uint16_t type = HALF_AT(data + ETHERNET_TYPE);
    _Pragma("unroll") for (; tags <= MF_TAGS_MAX && (type == TYPE_8021Q || type == TYPE_8021AD); tags++)
    {
        if (data + at + TAG_BYTES > end)
            return 0;
        type = HALF_AT(data + at + TAGGED_TYPE);
        at += TAG_BYTES;
    }
    frame->l3 = HIDDEN_OFFSET(at, 0x1f);
    frame->type = type;
    frame->tags = tags;
    return type == TYPE_IPV4 || type == TYPE_IPV6;
}

/* Addresses compared per round of the loop below: a round costs more than a comparison. */
#define ADDRESSES_A_ROUND 4
_Static_assert(MF_ADDRESSES_MAX % ADDRESSES_A_ROUND == 0, "whole rounds");

/* Whether the switch serves this address, given as two halves of an IPv6 address. The last round may read unused entries: they are zero,
 * and no caller asks for address zero. */
MF_INLINE int is_served(uint64_t high, uint64_t low)
{
    const struct mf_address MF_FAR *address = MF_CONTROL->address;
    uint32_t addresses = MF_CONTROL->addresses;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < addresses && i < MF_ADDRESSES_MAX); i += ADDRESSES_A_ROUND)
        _Pragma("unroll") for (uint32_t k = 0; k < ADDRESSES_A_ROUND; k++)
            if (FAR_LONG(address[i + k].ip + 8) == low && FAR_LONG(address[i + k].ip) == high)
                return 1;
    return 0;
}

/* The low half of the IPv6 address that represents an IPv4 address; the high half is 0. */
#define MAPPED(ipv4) ((uint64_t)(ipv4) << 32 | 0xffff0000)

MF_INLINE int is_served_ipv4(uint32_t ip)
{
    return is_served(0, MAPPED(ip));
}

/* An IPv6 frame may not name an IPv4 address in its mapped form, whose high half is 0. */
MF_INLINE int is_served_ipv6(const uint8_t *ip)
{
    uint64_t high = LONG_AT(ip);
    return high != 0 && is_served(high, LONG_AT(ip + 8));
}

/* Which addresses of a frame the switch serves: a sum. */
enum served { DESTINATION_SERVED = 1, SOURCE_SERVED = 2 };

/* Searches both addresses of a frame in one loop. The last round may read unused entries, which are zero; no frame is for address zero, and
 * none may come from it. */
MF_INLINE uint32_t which_served(uint64_t to_high, uint64_t to_low, uint64_t from_high, uint64_t from_low)
{
    const struct mf_address MF_FAR *address = MF_CONTROL->address;
    uint32_t addresses = MF_CONTROL->addresses, served = MF_ZERO;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < addresses && i < MF_ADDRESSES_MAX); i += ADDRESSES_A_ROUND)
        _Pragma("unroll") for (uint32_t k = 0; k < ADDRESSES_A_ROUND; k++)
        {
            uint64_t low = FAR_LONG(address[i + k].ip + 8);
            if (low == to_low && FAR_LONG(address[i + k].ip) == to_high)
                served |= DESTINATION_SERVED;
            if (low == from_low && FAR_LONG(address[i + k].ip) == from_high)
                served |= SOURCE_SERVED;
        }
    return served;
}

enum relation {
    FOREIGN,
    OURS,
    ODD,       /* may be for the switch, but XDP and TC cannot take it: fragments, options, extension headers */
    BAD_SENDER /* for the switch, but with an impossible source address or port */
};

/* Whether an IPv4 address, first byte lowest, can be a source: not 0.0.0.0/8, loopback, multicast or reserved. */
MF_INLINE int may_send_ipv4(uint32_t ip)
{
    uint32_t first = ip & 0xff;
    return first - 1 < 223 && first != 127;
}

/* The same for the first half of an IPv6 address: not multicast, and not ::/64, which has ::, ::1 and mapped IPv4 addresses. */
MF_INLINE int may_send_ipv6(uint64_t high)
{
    return high != 0 && (high & 0xff) != 0xff;
}

MF_INLINE enum relation is_ours_ipv4(const uint8_t *ip)
{
    if (ip[IPV4_PROTOCOL] != IP_UDP || ip[0] >> 4 != 4)
        return FOREIGN;
    /* Planted bug: takes the first fragment for a whole datagram. */
    uint32_t fragment = MF_MUTANT(60) ? FRAGMENT_OFFSET : FRAGMENT;
    if (MF_UNLIKELY(ip[0] != IPV4_PLAIN || (HALF_AT(ip + IPV4_FRAGMENT) & fragment)))
        return ODD;
    if (HALF_AT(ip + IPV4_BYTES + UDP_DESTINATION_PORT) != MF_CONTROL->port)
        return FOREIGN;
    uint32_t from = WORD_AT(ip + IPV4_SOURCE);
    uint32_t served = which_served(0, MAPPED(WORD_AT(ip + IPV4_DESTINATION)), 0, MAPPED(from));
    if (!(served & DESTINATION_SERVED))
        return FOREIGN;
    if (MF_MUTANT(61)) /* planted bug: accepts the switch's own address as a source */
        served = DESTINATION_SERVED;
    return may_send_ipv4(from) && HALF_AT(ip + IPV4_BYTES + UDP_SOURCE_PORT) != 0 && !(served & SOURCE_SERVED) ? OURS
                                                                                                               : BAD_SENDER;
}

/* Headers that may precede UDP in IPv6. */
enum extension { HOP_BY_HOP = 0, ROUTING = 43, FRAGMENTED = 44, DESTINATION = 60 };

MF_INLINE int is_extension(uint32_t next)
{
    return next == HOP_BY_HOP || next == ROUTING || next == FRAGMENTED || next == DESTINATION;
}

MF_INLINE enum relation is_ours_ipv6(const uint8_t *ip)
{
    if (ip[IPV6_NEXT] != IP_UDP)
        return is_extension(ip[IPV6_NEXT]) ? ODD : FOREIGN;
    uint64_t to_high = LONG_AT(ip + IPV6_DESTINATION), from_high = LONG_AT(ip + IPV6_SOURCE);
    if (ip[0] >> 4 != 6 || HALF_AT(ip + IPV6_BYTES + UDP_DESTINATION_PORT) != MF_CONTROL->port || to_high == 0)
        return FOREIGN;
    uint32_t served = which_served(to_high, LONG_AT(ip + IPV6_DESTINATION + 8), from_high, LONG_AT(ip + IPV6_SOURCE + 8));
    if (!(served & DESTINATION_SERVED))
        return FOREIGN;
    return may_send_ipv6(from_high) && HALF_AT(ip + IPV6_BYTES + UDP_SOURCE_PORT) != 0 && !(served & SOURCE_SERVED)
               ? OURS
               : BAD_SENDER;
}

/* Call after find_ip. Frames to or from a group MAC address (multicast, broadcast) are not taken: they would get several answers. */
MF_INLINE enum relation is_ours(const uint8_t *data, const uint8_t *end, const struct frame *frame)
{
    const uint8_t *ip = data + frame->l3;
    if (ip + IPV4_BYTES + UDP_BYTES > end || ((data[0] | data[6]) & 1))
        return FOREIGN;
    if (frame->type == TYPE_IPV4)
        return is_ours_ipv4(ip);
    return ip + IPV6_BYTES + UDP_BYTES > end ? FOREIGN : is_ours_ipv6(ip);
}

/* Whether a datagram for the switch was received, or why not. */
enum reception { RECEIVED, BAD_TAGS, BAD_LENGTH, BAD_CHECKSUM };

/* The note_ functions store the next hop back to a frame's sender. What copy_hop() loads by one instruction they store by one: a load after
 * partial stores stalls the processor. `outer`: the VLAN tag in the skb instead of the frame; 0: none. `tags`: their number, including that
 * one. */
MF_INLINE void note_tags(const uint8_t *data, const struct frame *frame, uint32_t outer, uint32_t tags,
                         struct mf_next_hop MF_FAR *hop)
{
    if (MF_LIKELY(tags == 0))
        return;
    uint32_t inner = frame->tags ? WORD_AT(data + ETHERNET_TYPE) : 0;
    hop->tag[0] = outer ? outer : inner;
    hop->tag[1] = outer ? inner : frame->tags > 1 ? WORD_AT(data + ETHERNET_TYPE + TAG_BYTES) : 0;
}

MF_INLINE void note_ethernet(const uint8_t *data, const struct frame *frame, uint32_t tags, struct mf_next_hop MF_FAR *hop)
{
    uint64_t first = LONG_AT(data), second = WORD_AT(data + 8); /* our MAC and two bytes of the peer's; its last four */
    FAR_LONG(hop->macs) = first >> 48 | second << 16 | first << 48;
    FAR_LONG(hop->macs + 8) = (uint32_t)(first >> 16) | (uint64_t)tags << 32 | (uint64_t)frame->type << 48;
}

MF_INLINE void note_addresses(struct mf_scratch MF_FAR *scratch, uint64_t peer_high, uint64_t peer_low, uint64_t own_high,
                              uint64_t own_low)
{
    FAR_LONG(scratch->in.from.ip) = FAR_LONG(scratch->back.peer.ip) = peer_high;
    FAR_LONG(scratch->in.from.ip + 8) = FAR_LONG(scratch->back.peer.ip + 8) = peer_low;
    FAR_LONG(scratch->back.own) = own_high;
    FAR_LONG(scratch->back.own + 8) = own_low;
}

/* Reads an IPv4 header: how many bytes should follow it, and the sum of its addresses. 0: its own checksum is wrong. */
MF_INLINE int read_ipv4(const uint8_t *ip, struct mf_scratch MF_FAR *scratch, uint32_t *follow, uint64_t *sum)
{
    uint64_t rest = (uint64_t)WORD_AT(ip) + WORD_AT(ip + 4) + WORD_AT(ip + 8);
    *sum = (uint64_t)WORD_AT(ip + IPV4_SOURCE) + WORD_AT(ip + IPV4_DESTINATION);
    note_addresses(scratch, 0, MAPPED(WORD_AT(ip + IPV4_SOURCE)), 0, MAPPED(WORD_AT(ip + IPV4_DESTINATION)));
    *follow = mf_net16(HALF_AT(ip + IPV4_LENGTH)) - IPV4_BYTES;
    return sum_fold(rest + *sum) == 0xffff;
}

/* The same for IPv6, whose header has no checksum. */
MF_INLINE void read_ipv6(const uint8_t *ip, struct mf_scratch MF_FAR *scratch, uint32_t *follow, uint64_t *sum)
{
    uint64_t peer_high = LONG_AT(ip + IPV6_SOURCE), peer_low = LONG_AT(ip + IPV6_SOURCE + 8);
    uint64_t own_high = LONG_AT(ip + IPV6_DESTINATION), own_low = LONG_AT(ip + IPV6_DESTINATION + 8);
    *sum = sum_long(sum_long(sum_long(sum_long(0, peer_high), peer_low), own_high), own_low);
    note_addresses(scratch, peer_high, peer_low, own_high, own_low);
    *follow = mf_net16(HALF_AT(ip + IPV6_LENGTH));
}

/* Whether a checksum is the pseudo-header's sum only: its sender left the rest to hardware. A complete, damaged or forged checksum may have
 * the same value by chance; whether to accept it depends on the interface. */
MF_INLINE int is_left_to_hardware(const struct frame *frame)
{
    return frame->check == sum_fold(frame->pseudo);
}

/* Whether the program decides by a datagram's first bytes: then only these are copied, and the checksum is not checked. */
MF_INLINE int is_decided_by_header(const uint8_t *payload, const uint8_t *end, uint32_t length)
{
    return PROGRAM_HEADER_BYTES && length >= PROGRAM_HEADER_BYTES && payload + PROGRAM_HEADER_BYTES <= end &&
           PROGRAM_DECIDES_BY_HEADER(payload[offsetof(struct mf_header, operation)]);
}

/* Copies these bytes. 0: the frame is shorter than the datagram. */
MF_INLINE int copy_header(const uint8_t *payload, const uint8_t *end, uint32_t length, struct mf_scratch MF_FAR *scratch)
{
    _Pragma("unroll") for (uint32_t i = 0; i < PROGRAM_HEADER_BYTES; i += sizeof(mf_long))
        FAR_LONG(scratch->data + i) = LONG_AT(payload + i);
    scratch->copied = PROGRAM_HEADER_BYTES;
    return payload + MF_MASK(length, 0x7ff) <= end;
}

MF_INLINE enum reception copy_whole(const uint8_t *udp, const uint8_t *end, struct frame *frame,
                                    struct mf_scratch MF_FAR *scratch)
{
    uint64_t sum = sum_long(frame->pseudo, LONG_AT(udp));
    if (!copy_in(scratch->data, udp + UDP_BYTES, end, scratch->in.length, &sum))
        return BAD_LENGTH;
    scratch->copied = scratch->in.length;
    if (MF_UNLIKELY(frame->check == 0))
        return frame->type == TYPE_IPV4 ? RECEIVED : BAD_CHECKSUM;
    if (MF_LIKELY(sum_fold(sum) == 0xffff))
        return RECEIVED;
    frame->whole = 0;
    scratch->whole_check = (uint16_t)~sum_fold(sum - ((uint64_t)frame->check << 16));
    return is_left_to_hardware(frame) ? RECEIVED : BAD_CHECKSUM;
}

/* Reads the UDP header and copies the payload. `expected`: bytes after the IP header, as it says; `pseudo`: the sum of the addresses;
 * `by_header`: 1: datagrams decided by their header may be received so. */
MF_INLINE enum reception receive_udp(const uint8_t *udp, const uint8_t *end, uint32_t expected, uint64_t pseudo,
                                     int by_header, struct frame *frame, struct mf_scratch MF_FAR *scratch)
{
    if (udp + UDP_BYTES > end)
        return BAD_LENGTH;
    uint32_t bytes = mf_net16(HALF_AT(udp + UDP_LENGTH)), length = bytes - UDP_BYTES;
    if (bytes != expected || bytes < UDP_BYTES || bytes > UDP_BYTES + MF_PACKET_MAX)
        return BAD_LENGTH;
    uint64_t port = HALF_AT(udp); /* and 0 into `reserved` */
    FAR_LONG(&scratch->in.from.port) = port | (uint64_t)length << 32;
    FAR_LONG(&scratch->back.peer.port) = port | (uint64_t)frame->interface << 32;
    scratch->in.data = scratch->data;
    frame->check = HALF_AT(udp + UDP_CHECKSUM);
    frame->pseudo = pseudo + (IP_UDP << 8) + HALF_AT(udp + UDP_LENGTH);
    frame->whole = 1;
    if (!by_header || !is_decided_by_header(udp + UDP_BYTES, end, length) || is_left_to_hardware(frame) ||
        (frame->check == 0 && frame->type != TYPE_IPV4))
        return copy_whole(udp, end, frame, scratch);
    return copy_header(udp + UDP_BYTES, end, length, scratch) ? RECEIVED : BAD_LENGTH;
}

/* Call after is_ours. Fills the scratch area's `in`, `data`, `copied` and `back`. */
MF_INLINE enum reception receive(const uint8_t *data, const uint8_t *end, uint32_t outer, int by_header, struct frame *frame,
                                 struct mf_scratch MF_FAR *scratch)
{
    const uint8_t *ip = data + frame->l3;
    uint32_t header = frame->type == TYPE_IPV4 ? IPV4_BYTES : IPV6_BYTES, follow;
    uint64_t sum;
    if (data + ETHERNET_BYTES + TAG_BYTES * MF_TAGS_MAX > end || ip + header + UDP_BYTES > end)
        return BAD_LENGTH;
    uint32_t tags = frame->tags + (outer != 0);
    if (MF_UNLIKELY(tags > MF_TAGS_MAX))
        return BAD_TAGS;
    note_tags(data, frame, outer, tags, &scratch->back);
    note_ethernet(data, frame, tags, &scratch->back);
    if (frame->type != TYPE_IPV4)
        read_ipv6(ip, scratch, &follow, &sum);
    else if (MF_UNLIKELY(!read_ipv4(ip, scratch, &follow, &sum)))
        return BAD_CHECKSUM;
    frame->l4 = HIDDEN_OFFSET(frame->l3 + header, 0x7f);
    return receive_udp(data + frame->l4, end, follow, sum, by_header, frame, scratch);
}

#endif
