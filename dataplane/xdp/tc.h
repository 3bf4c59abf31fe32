/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * TC takes what XDP leaves to it: datagrams that may owe several answers, or one too large for the frame. Here a packet can be cloned and
 * grown.
 *
 * An answer to the packet's sender goes back where it came from. A datagram to another peer goes to the cached next hop (next_hops.h), else
 * to that of the kernel's routes and neighbours, if forwarding is allowed. Without either it goes to user space through a ring, whose
 * socket reaches every peer.
 */
#ifndef MIDFLIGHT_TC_H
#define MIDFLIGHT_TC_H

#include "compose.h"
#include "handover.h"
#include "kernel_types.h"
#include "next_hops.h"
#include "routes.h"

/* TCX_NEXT and TCX_DROP, which older headers lack. */
enum { PASS_UP = -1, DROP = 2 };

#define TO_THIS_HOST 0       /* PACKET_HOST */
#define CHECKSUM_COMPLETE 2
#define CHECKSUM_PARTIAL 3
#define HEADERS_MOST (ETHERNET_BYTES + TAG_BYTES * (MF_TAGS_MAX + 1) + IPV6_BYTES + UDP_BYTES)

/* The kernel's metadata of a packet, which its clones keep. */
enum copies {
    TAG_BESIDE = 1, /* the outermost VLAN tag is in the skb, not in the frame */
    PARTIAL = 2     /* the checksum is completed later, by the card or the kernel */
};

/* Copies the next hop to this peer from the cache; 0 if unknown. */
MF_INLINE int learned_hop(const struct mf_address MF_FAR *peer, struct mf_next_hop MF_FAR *to)
{
    if (!mf_lock())
        return 0;
    int is_known = knows_hop(peer, to);
    mf_unlock();
    return is_known;
}

/* Overwrites the packet with the frame that carries a datagram to this next hop. 0: the packet cannot be resized. */
MF_INLINE int compose_in(struct __sk_buff *skb, const struct mf_next_hop MF_FAR *hop, const struct outgoing *outgoing,
                         enum copies copies)
{
    uint32_t bytes = frame_bytes(hop, copies & TAG_BESIDE, outgoing->length);
    if (skb->len != bytes && bpf_skb_change_tail(skb, bytes, 0))
        return 0;
    uint8_t *data = (uint8_t *)(long)skb->data, *end = (uint8_t *)(long)skb->data_end;
    return compose(data, end, hop, copies & TAG_BESIDE, outgoing, copies & PARTIAL);
}

/* Numbers of a packet's datagrams. Below MF_OUT_MAX: an answer. */
enum { FORWARDED = MF_OUT_MAX, FORWARDED_COPY };

MF_INLINE struct outgoing outgoing_of(const struct mf_scratch MF_FAR *scratch, uint32_t number)
{
    const struct mf_forward MF_FAR *forward = &scratch->out.forward;
    struct outgoing outgoing = {number == FORWARDED ? &forward->to : &forward->copy_to, scratch->data, forward->length};
    if (number < MF_OUT_MAX) {
        const struct mf_out_packet MF_FAR *packet = &scratch->out.packet[number];
        outgoing.to = &packet->to;
        outgoing.data = packet->data;
        outgoing.length = packet->length;
    }
    return outgoing;
}

/* Sends one datagram. The packet itself carries the last to leave: the first answer, if it is to the packet's sender, or the forwarded
 * datagram. Clones carry the others. Returns the TC program's return value. */
static __attribute__((noinline)) int send_by_tc(struct __sk_buff *skb, struct mf_scratch MF_FAR *scratch, uint32_t number,
                                                enum copies copies)
{
    const struct outgoing outgoing = outgoing_of(scratch, number);
    struct mf_next_hop MF_FAR *hop = &scratch->back;
    const uint8_t MF_FAR *own = hop->own;
    int back = mf_address_equal(outgoing.to, &scratch->in.from);
    if (!back) {
        hop = &scratch->other;
        int learned = learned_hop(outgoing.to, hop);
        own = learned && !MF_MUTANT(74) ? hop->own : 0; /* planted bug: user space does not learn our address */
        if (!learned && !routed_hop(skb, skb->ifindex, scratch, outgoing.to, outgoing.length))
            goto cannot;
    }
    if (!is_same_shape(&scratch->back, hop) || !compose_in(skb, hop, &outgoing, copies))
        goto cannot;
    int as_itself = (back && number == 0) || number == FORWARDED;
    /* Planted bug: a clone leaves where the packet came from. */
    if (!as_itself && bpf_clone_redirect(skb, MF_MUTANT(70) ? skb->ifindex : hop->interface, 0))
        goto cannot;
    if (number < MF_OUT_MAX)
        scratch->counts.tc_answered++;
    else
        scratch->counts.forwarded++;
    return as_itself ? (int)bpf_redirect(hop->interface, 0) : DROP;
cannot:
    hand_over(scratch, outgoing.to, outgoing.data, outgoing.length, own);
    return DROP;
}

/* The last answer leaves first: a program writes the answer to the sender before packets to others, such as a task to an executor, and
 * those are more urgent. */
MF_INLINE int answer_all_by_tc(struct __sk_buff *skb, struct mf_scratch MF_FAR *scratch, enum copies copies)
{
    int verdict = DROP;
    for (uint32_t left = scratch->out.count; MF_LOOP(left > 0 && left <= MF_OUT_MAX); left--)
        verdict = send_by_tc(skb, scratch, left - 1, copies);
    return verdict;
}

/* The copy first, as a clone: afterwards the packet itself is gone. */
MF_INLINE int forward_by_tc(struct __sk_buff *skb, struct mf_scratch MF_FAR *scratch, enum copies copies)
{
    if (!may_forward(scratch)) {
        scratch->counts.asserted++;
        return DROP;
    }
    if (scratch->out.forward.copy_to.port)
        send_by_tc(skb, scratch, FORWARDED_COPY, copies);
    return send_by_tc(skb, scratch, FORWARDED, copies);
}

/* Makes the first `bytes` of a packet, which may have several pieces, readable through `data`. */
MF_INLINE int make_linear(struct __sk_buff *skb, uint32_t bytes)
{
    bytes = bytes < skb->len ? bytes : skb->len;
    return (uint64_t)(long)skb->data_end - (uint64_t)(long)skb->data >= bytes || bpf_skb_pull_data(skb, bytes) == 0;
}

/* The VLAN tag in the skb, as it would be in the frame; 0: none. */
MF_INLINE uint32_t tag_beside(struct __sk_buff *skb)
{
    return skb->vlan_present ? skb->vlan_proto | (uint32_t)mf_net16((uint16_t)skb->vlan_tci) << 16 : 0;
}

/* Prepares the packet for rewriting. Returns its enum copies; -1: it cannot be rewritten, or its checksum contradicts the kernel's
 * metadata. */
MF_INLINE int prepare_copies(struct __sk_buff *skb, const struct frame *frame, struct mf_scratch MF_FAR *scratch)
{
    const struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);
    uint32_t summed = BPF_CORE_READ_BITFIELD(kernel_skb, ip_summed);
    int beside = skb->vlan_present ? TAG_BESIDE : 0;
    if (!(summed == CHECKSUM_PARTIAL ? is_left_to_hardware(frame) : frame->whole)) {
        scratch->counts.passed_checksum++;
        return -1;
    }
    if (summed == CHECKSUM_PARTIAL)
        return beside | PARTIAL;
    /* Hardware has summed the whole packet, which is about to change. Growing it removes that sum; bpf_csum_update then fails, which proves
     * it. */
    if (summed == CHECKSUM_COMPLETE && (bpf_skb_change_tail(skb, skb->len + 1, 0) || bpf_csum_update(skb, 0) >= 0))
        return -1;
    return beside;
}

/* Copies the packet's datagram to this CPU's scratch area; 0: the packet is not for TC. Counts only what XDP cannot have counted. */
MF_INLINE int is_received_by_tc(struct __sk_buff *skb, struct mf_scratch MF_FAR **scratch, struct frame *frame)
{
    uint32_t protocol = skb->protocol, cpu;
    if (protocol != TYPE_IPV4 && protocol != TYPE_IPV6 && protocol != TYPE_8021Q && protocol != TYPE_8021AD)
        return 0;
    /* Planted bug: takes packets for another machine. */
    if ((skb->pkt_type != TO_THIS_HOST && !MF_MUTANT(73)) || !make_linear(skb, HEADERS_MOST))
        return 0;
    const uint8_t *data = (const uint8_t *)(long)skb->data, *end = (const uint8_t *)(long)skb->data_end;
    if (!find_ip(data, end, frame) || is_ours(data, end, frame) != OURS)
        return 0;
    cpu = bpf_get_smp_processor_id();
    if (cpu + 1 >= MF_SCRATCHES)
        return 0;
    *scratch = mf_scratch_of(1 + cpu);
    if (skb->gso_size && !MF_MUTANT(72)) { /* planted bug: takes merged packets for one datagram */
        (*scratch)->counts.passed_merged++;
        return 0;
    }
    if (!make_linear(skb, skb->len))
        return 0;
    data = (const uint8_t *)(long)skb->data;
    end = (const uint8_t *)(long)skb->data_end;
    frame->interface = skb->ifindex;
    return receive(data, end, tag_beside(skb), 0, frame, *scratch) == RECEIVED;
}

SEC("tcx/ingress")
int mf_tc(struct __sk_buff *skb)
{
    struct mf_scratch MF_FAR *scratch;
    struct frame frame;
    MF_USES_ARENA();
    if (!is_received_by_tc(skb, &scratch, &frame))
        return PASS_UP;
    int prepared = prepare_copies(skb, &frame, scratch);
    if (prepared < 0)
        return PASS_UP;
    enum copies copies = (enum copies)HIDDEN_OFFSET((uint32_t)prepared, 3);
    if (MF_UNLIKELY(!mf_lock())) {
        scratch->counts.passed_contended++;
        return PASS_UP;
    }
    take_from_frame(scratch);
    mf_unlock();
    scratch->counts.tc_taken++;
    if (MF_UNLIKELY(is_cookie_owed(scratch))) {
        hand_over_cookie(scratch);
        return DROP;
    }
    if (scratch->out.is_forwarded)
        return forward_by_tc(skb, scratch, copies);
    return answer_all_by_tc(skb, scratch, copies);
}

#endif
