/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * TC: what XDP passed on because it may owe several answers, or because its frame has no room for the one. Here a packet can be
 * copied and made longer.
 *
 * An answer to the packet's sender goes back the way it came; one to an executor who waits goes the way that his last RETRIEVE
 * came (ways.h), or else the way that the kernel's routes and neighbours say, where they may be asked. What is left goes
 * to user space through a ring: it has a socket, which finds a way to everybody.
 */
#ifndef MIDFLIGHT_TC_H
#define MIDFLIGHT_TC_H

#include "compose.h"
#include "core.h"
#include "handover.h"
#include "kernel_types.h"
#include "ways.h"

/* What a program at tcx may say. */
enum { GO_ON = -1, DROP = 2 };

#define TO_THIS_HOST 0       /* PACKET_HOST */
#define CHECKSUM_COMPLETE 2
#define CHECKSUM_PARTIAL 3
#define FAMILY_IPV4 2
#define FAMILY_IPV6 10
#define HEADERS_MOST (ETHERNET_BYTES + TAG_BYTES * (MF_TAGS_MAX + 1) + IPV6_BYTES + UDP_BYTES)

/* What the copies of a packet have in common, beside what is on the desk. */
enum copies {
    TAG_BESIDE = 1, /* the outermost VLAN tag is not in the frame */
    PARTIAL = 2     /* hardware completes the checksum, or who stands in for it */
};

/* The way by which the last RETRIEVE of this address came. */
MF_INLINE int learned_way(const struct mf_address MF_FAR *to, struct mf_way MF_FAR *way)
{
    if (!mf_lock())
        return 0;
    struct mf_way MF_FAR *found = find_way(to);
    if (found)
        copy_way(way, found);
    mf_unlock();
    return found != 0;
}

MF_INLINE uint16_t type_of(const struct mf_address MF_FAR *address)
{
    int is_ipv4 = FAR_LONG(address->ip) == 0 && FAR_WORD(address->ip + 8) == (uint32_t)MAPPED(0);
    return is_ipv4 ? TYPE_IPV4 : TYPE_IPV6;
}

/* What the kernel's routes and neighbours say. They answer only where packets may be forwarded. */
static __attribute__((noinline)) int kernel_way(struct __sk_buff *skb, const struct mf_desk MF_FAR *desk,
                                                const struct mf_out_packet MF_FAR *packet, struct mf_way MF_FAR *way)
{
    struct bpf_fib_lookup ask = {.l4_protocol = IP_UDP, .ifindex = skb->ifindex};
    copy_way(way, &desk->way);
    MF_COPY(&way->peer, &packet->to);
    way->type = type_of(&packet->to);
    way->tags = 0;
    ask.tot_len = (uint16_t)(ip_bytes(way) + UDP_BYTES + packet->length);
    if (way->type == TYPE_IPV4) {
        ask.family = FAMILY_IPV4;
        ask.ipv4_src = FAR_WORD(way->own + 12);
        ask.ipv4_dst = FAR_WORD(way->peer.ip + 12);
    } else {
        ask.family = FAMILY_IPV6;
        _Pragma("unroll") for (uint32_t i = 0; i < 4; i++)
        {
            ask.ipv6_src[i] = FAR_WORD(way->own + 4 * i);
            ask.ipv6_dst[i] = FAR_WORD(way->peer.ip + 4 * i);
        }
    }
    if (bpf_fib_lookup(skb, &ask, sizeof(ask), 0) != BPF_FIB_LKUP_RET_SUCCESS)
        return 0;
    way->interface = ask.ifindex;
    _Pragma("unroll") for (uint32_t i = 0; i < 6; i += 2)
    {
        FAR_HALF(way->macs + i) = HALF_AT(ask.dmac + i);
        FAR_HALF(way->macs + 6 + i) = HALF_AT(ask.smac + i);
    }
    return 1;
}

/* Whether a frame that came one way can be made one that goes the other: the same headers, with other contents. */
MF_INLINE int is_alike(const struct mf_way MF_FAR *a, const struct mf_way MF_FAR *b)
{
    if (a->type != b->type || a->tags != b->tags)
        return 0;
    return MF_LIKELY(a->tags == 0) || (a->tag[0] == b->tag[0] && (a->tags == 1 || a->tag[1] == b->tag[1]));
}

/* Makes the packet the frame that brings an answer. 0: it cannot. */
MF_INLINE int compose_in(struct __sk_buff *skb, const struct mf_way MF_FAR *way, const struct mf_out_packet MF_FAR *packet,
                         enum copies copies)
{
    uint32_t bytes = frame_bytes(way, copies & TAG_BESIDE, packet->length);
    if (skb->len != bytes && bpf_skb_change_tail(skb, bytes, 0))
        return 0;
    uint8_t *data = (uint8_t *)(long)skb->data, *end = (uint8_t *)(long)skb->data_end;
    return compose(data, end, way, copies & TAG_BESIDE, packet, copies & PARTIAL);
}

/* Sends an answer to whom it is for; the last one, to the packet's sender, as the packet itself, any other as a copy. Returns
 * what the program says then. */
static __attribute__((noinline)) int answer_by_tc(struct __sk_buff *skb, struct mf_desk MF_FAR *desk, uint32_t number,
                                                  enum copies copies)
{
    const struct mf_out_packet MF_FAR *packet = &desk->out.packet[number];
    struct mf_way MF_FAR *way = &desk->way;
    const uint8_t MF_FAR *own = way->own;
    int back = mf_address_equal(&packet->to, &desk->in.from);
    if (!back) {
        way = &desk->other;
        int learned = learned_way(&packet->to, way);
        own = learned ? way->own : 0;
        if (!learned && !kernel_way(skb, desk, packet, way))
            goto cannot;
    }
    if (!is_alike(&desk->way, way) || !compose_in(skb, way, packet, copies))
        goto cannot;
    if (back && number == 0) {
        desk->counts.tc_answered++;
        return (int)bpf_redirect(way->interface, 0);
    }
    if (bpf_clone_redirect(skb, way->interface, 0))
        goto cannot;
    desk->counts.tc_answered++;
    return DROP;
cannot:
    hand_over(desk, packet, own);
    return DROP;
}

/* The core owes a SUBMIT's answer before the tasks that it assigns, but it is the executor who is waited for. */
MF_INLINE int answer_all_by_tc(struct __sk_buff *skb, struct mf_desk MF_FAR *desk, enum copies copies)
{
    int verdict = DROP;
    for (uint32_t left = desk->out.count; MF_LOOP(left > 0 && left <= MF_OUT_MAX); left--)
        verdict = answer_by_tc(skb, desk, left - 1, copies);
    return verdict;
}

/* Makes the first bytes of a packet, or all, directly readable. */
MF_INLINE int make_linear(struct __sk_buff *skb, uint32_t bytes)
{
    bytes = bytes < skb->len ? bytes : skb->len;
    return (uint64_t)(long)skb->data_end - (uint64_t)(long)skb->data >= bytes || bpf_skb_pull_data(skb, bytes) == 0;
}

/* The VLAN tag beside a packet, as it would be in the frame; 0: none. */
MF_INLINE uint32_t tag_beside(struct __sk_buff *skb)
{
    return skb->vlan_present ? skb->vlan_proto | (uint32_t)mf_net16((uint16_t)skb->vlan_tci) << 16 : 0;
}

/* Prepares the packet for being rewritten, and says how; -1: it cannot be, or its checksum is not what the kernel knows of
 * it. */
MF_INLINE int prepare_copies(struct __sk_buff *skb, const struct frame *frame, struct mf_desk MF_FAR *desk)
{
    const struct sk_buff *behind = bpf_cast_to_kern_ctx(skb);
    uint32_t summed = BPF_CORE_READ_BITFIELD(behind, ip_summed);
    int beside = skb->vlan_present ? TAG_BESIDE : 0;
    if (!(summed == CHECKSUM_PARTIAL ? is_left_to_hardware(frame) : frame->whole)) {
        desk->counts.passed_checksum++;
        return -1;
    }
    if (summed == CHECKSUM_PARTIAL)
        return beside | PARTIAL;
    /* A sum over the packet that hardware made would be wrong soon. A packet that grows loses it; then none can be updated. */
    if (summed == CHECKSUM_COMPLETE && (bpf_skb_change_tail(skb, skb->len + 1, 0) || bpf_csum_update(skb, 0) >= 0))
        return -1;
    return beside;
}

/* Whether the packet's datagram lies on this CPU's desk now; else the packet goes on. What XDP has counted is not counted
 * again. */
MF_INLINE int is_received_by_tc(struct __sk_buff *skb, struct mf_desk MF_FAR **desk, struct frame *frame)
{
    uint32_t protocol = skb->protocol, cpu;
    if (protocol != TYPE_IPV4 && protocol != TYPE_IPV6 && protocol != TYPE_8021Q && protocol != TYPE_8021AD)
        return 0;
    if (skb->pkt_type != TO_THIS_HOST || !make_linear(skb, HEADERS_MOST))
        return 0;
    const uint8_t *data = (const uint8_t *)(long)skb->data, *end = (const uint8_t *)(long)skb->data_end;
    if (!find_ip(data, end, frame) || is_ours(data, end, frame) != OURS)
        return 0;
    cpu = bpf_get_smp_processor_id();
    if (cpu + 1 >= MF_DESKS)
        return 0;
    *desk = mf_desk_of(1 + cpu);
    if (skb->gso_size) {
        (*desk)->counts.passed_merged++;
        return 0;
    }
    if (!make_linear(skb, skb->len))
        return 0;
    data = (const uint8_t *)(long)skb->data;
    end = (const uint8_t *)(long)skb->data_end;
    return receive(data, end, tag_beside(skb), frame, *desk) == RECEIVED;
}

SEC("tcx/ingress")
int mf_tc(struct __sk_buff *skb)
{
    struct mf_desk MF_FAR *desk;
    struct frame frame;
    MF_USES_ARENA();
    if (!is_received_by_tc(skb, &desk, &frame))
        return GO_ON;
    int how = prepare_copies(skb, &frame, desk);
    if (how < 0)
        return GO_ON;
    enum copies copies = (enum copies)HIDDEN_OFFSET((uint32_t)how, 3);
    desk->way.interface = skb->ifindex;
    if (MF_UNLIKELY(!mf_lock())) {
        desk->counts.passed_contended++;
        return GO_ON;
    }
    take_from_frame(desk);
    mf_unlock();
    desk->counts.tc_taken++;
    if (MF_UNLIKELY(is_for_the_true_sender(desk))) {
        hand_over_cookie(desk);
        return DROP;
    }
    return answer_all_by_tc(skb, desk, copies);
}

#endif
