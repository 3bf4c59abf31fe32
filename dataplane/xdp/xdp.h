/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * XDP: one frame in, at most one out, back to its sender or forwarded to another peer's next hop. TC gets datagrams that may owe several
 * answers, or one too large for the frame.
 */
#ifndef MIDFLIGHT_XDP_H
#define MIDFLIGHT_XDP_H

#include "compose.h"
#include "handover.h"
#include "kernel_types.h"
#include "next_hops.h"
#include "odd.h"
#include "plain.h"
#include "routes.h"

#define ETHERNET_LEAST 60 /* bytes of the shortest frame; hardware adds a checksum of four */
#define SHORTEST (ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + sizeof(struct mf_version)) /* bytes of the shortest answer */
_Static_assert(SHORTEST + sizeof(mf_long) + sizeof(mf_half) == ETHERNET_LEAST, "answer_by_xdp pads with ten bytes");

/* Bytes before a frame reserved for the driver's own header. */
#define HEADROOM_LEFT 32
#define CACHE_LINE 64

/* Bytes by which a frame can grow at either end. */
struct room {
    int32_t tail, head;
};

/* Bytes between two addresses. Hides the compiler's arithmetic on halves of pointers, which the verifier refuses. */
MF_INLINE int32_t distance(const void *from, const void *to)
{
    uint64_t bytes = (uint64_t)to - (uint64_t)from;
    __asm__("" : "+r"(bytes));
    return (int32_t)bytes;
}

MF_INLINE struct room room_around(struct xdp_md *context)
{
    const struct xdp_buff *buffer = bpf_cast_to_kern_ctx(context);
    int32_t shared = (int32_t)((bpf_core_type_size(struct skb_shared_info) + CACHE_LINE - 1) & -(uint64_t)CACHE_LINE);
    int32_t left = (int32_t)bpf_core_type_size(struct xdp_frame) + HEADROOM_LEFT;
    int32_t meta = distance(buffer->data_meta, buffer->data); /* below 0: the driver supports no metadata */
    struct room room = {
        .tail = (int32_t)buffer->frame_sz - shared - distance(buffer->data_hard_start, buffer->data_end),
        .head = distance(buffer->data_hard_start, buffer->data) - (meta > 0 ? meta : 0) - left,
    };
    return room;
}

/* Resizes the frame: it grows at its end if there is room, else at its start; 0 if neither works. */
MF_INLINE int resize(struct xdp_md *context, int32_t bytes)
{
    int32_t more = bytes - (int32_t)((uint64_t)context->data_end - (uint64_t)context->data);
    if (more == 0)
        return 1;
    if (more > 0) {
        struct room room = room_around(context);
        if (more > room.tail)
            return more <= room.head && bpf_xdp_adjust_head(context, -more) == 0;
    }
    return bpf_xdp_adjust_tail(context, more) == 0;
}

/* Bytes of the longest answer that fits into a datagram's frame. */
MF_INLINE uint32_t longest_answer(struct xdp_md *context, const struct mf_datagram MF_FAR *in)
{
    struct room room = room_around(context);
    int32_t more = room.tail > room.head ? room.tail : room.head;
    return more > 0 ? in->length + (uint32_t)more : in->length;
}

static __attribute__((noinline)) int answer_by_xdp(struct xdp_md *context, struct mf_scratch MF_FAR *scratch)
{
    const struct mf_out_packet MF_FAR *packet = &scratch->out.packet[0];
    uint32_t bytes = frame_bytes(&scratch->back, 0, packet->length);
    int short_frame = bytes < ETHERNET_LEAST;
    if (scratch->out.count != 1 || !mf_address_equal(&packet->to, &scratch->in.from)) {
        scratch->counts.asserted++;
        return XDP_DROP;
    }
    if (!resize(context, short_frame ? ETHERNET_LEAST : (int32_t)bytes))
        return XDP_PASS;
    uint8_t *data = (uint8_t *)(long)context->data, *end = (uint8_t *)(long)context->data_end;
    if (short_frame && data + ETHERNET_LEAST <= end) {
        PUT_LONG(data + SHORTEST, 0);
        PUT_HALF(data + SHORTEST + sizeof(mf_long), 0);
    }
    const struct outgoing outgoing = {&packet->to, packet->data, packet->length};
    if (!compose(data, end, &scratch->back, 0, &outgoing, 0)) {
        scratch->counts.send_failed++;
        return XDP_DROP;
    }
    scratch->counts.xdp_answered++;
    return XDP_TX;
}

/* Sends a COOKIE by the cached next hop of its receiver, so that it reaches the address in the packet, not the frame's sender (T13). So a
 * known client gets its next cookie without the process, which sends to others. */
static __attribute__((noinline)) int send_cookie(struct xdp_md *context, struct mf_scratch MF_FAR *scratch, uint32_t is_known)
{
    if (!is_known) {
        hand_over_cookie(scratch);
        return XDP_DROP;
    }
    copy_hop(&scratch->back, &scratch->other);
    int action = answer_by_xdp(context, scratch);
    int is_elsewhere = scratch->back.interface != context->ingress_ifindex;
    return action == XDP_TX && is_elsewhere ? (int)bpf_redirect(scratch->back.interface, 0) : action;
}

/* Copies the rest of a datagram whose header is in the scratch area, as rewritten by the program. Checks the datagram's checksum, which was
 * not checked before: user space would send damaged bytes with a right checksum. 0: it is wrong. */
static __attribute__((noinline)) int fetch_rest(struct xdp_md *context, struct mf_scratch MF_FAR *scratch)
{
    const uint8_t *data = (const uint8_t *)(long)context->data, *end = (const uint8_t *)(long)context->data_end;
    const uint8_t *udp = data + HIDDEN_OFFSET(ip_offset(&scratch->back, 0) + ip_bytes(&scratch->back), 0x7f);
    const uint8_t *payload = udp + UDP_BYTES;
    uint32_t header = scratch->copied, length = scratch->in.length;
    if (header == length)
        return 1;
    if (header != PROGRAM_HEADER_BYTES || payload + PROGRAM_HEADER_BYTES > end)
        return 0;
    uint64_t sum = address_sum(&scratch->back) + (IP_UDP << 8) + HALF_AT(udp + UDP_LENGTH);
    sum = sum_long(sum, LONG_AT(udp));
    _Pragma("unroll") for (uint32_t i = 0; i < PROGRAM_HEADER_BYTES; i += sizeof(mf_long))
        sum = sum_long(sum, LONG_AT(payload + i));
    if (!copy_in(scratch->data + PROGRAM_HEADER_BYTES, payload + PROGRAM_HEADER_BYTES, end, length - PROGRAM_HEADER_BYTES, &sum))
        return 0;
    scratch->copied = length;
    return HALF_AT(udp + UDP_CHECKSUM) == 0 || sum_fold(sum) == 0xffff;
}

/* Whether this program is attached to an interface. Others may not accept frames that XDP redirects, or are unsuitable (bridges, VLANs). */
MF_INLINE int is_attached_to(uint32_t interface)
{
    const uint32_t MF_FAR *own = MF_CONTROL->interface;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < MF_INTERFACES_MAX && own[i]); i++)
        if (own[i] == interface)
            return 1;
    return 0;
}

/* Asks the kernel for the next hop of the datagram's new address. */
MF_INLINE int has_route(struct xdp_md *context, struct mf_scratch MF_FAR *scratch)
{
    const struct mf_forward MF_FAR *forward = &scratch->out.forward;
    return routed_hop(context, context->ingress_ifindex, scratch, &forward->to, forward->length) &&
           is_attached_to(scratch->other.interface);
}

/* Forwards the datagram: rewrites its frame in place, if the cache or the kernel knows the next hop and it takes frames of the same shape.
 * Otherwise user space sends it. User space also sends a requested copy: XDP cannot clone a frame. */
MF_INLINE int forward_by_xdp(struct xdp_md *context, struct mf_scratch MF_FAR *scratch, int is_known)
{
    const struct mf_forward MF_FAR *forward = &scratch->out.forward;
    if (!may_forward(scratch)) {
        scratch->counts.asserted++;
        return XDP_DROP;
    }
    int has_hop = is_known || has_route(context, scratch);
    int in_place = has_hop && forward->length == scratch->in.length && is_same_shape(&scratch->back, &scratch->other);
    if (MF_UNLIKELY(!in_place || forward->copy_to.port) && !fetch_rest(context, scratch)) {
        scratch->counts.dropped_checksum++;
        return XDP_DROP;
    }
    if (forward->copy_to.port)
        hand_over(scratch, &forward->copy_to, scratch->data, forward->length, 0);
    if (!in_place) {
        hand_over(scratch, &forward->to, scratch->data, forward->length, is_known ? scratch->other.own : 0);
        return XDP_DROP;
    }
    uint8_t *data = (uint8_t *)(long)context->data, *end = (uint8_t *)(long)context->data_end;
    int is_plain = PROGRAM_HEADER_BYTES && scratch->copied == PROGRAM_HEADER_BYTES && scratch->is_whole &&
                   shape_of(&scratch->other) == PLAIN_SHAPE && forward->header == PROGRAM_HEADER_BYTES;
    if (MF_LIKELY(is_plain) ? !rewrite_plain(data, end, scratch) : !rewrite(data, end, scratch)) {
        scratch->counts.send_failed++;
        return XDP_DROP;
    }
    scratch->counts.forwarded++;
    return scratch->other.interface == context->ingress_ifindex ? XDP_TX : (int)bpf_redirect(scratch->other.interface, 0);
}

MF_INLINE void count_reception(struct mf_shell_counts MF_FAR *counts, enum reception reception)
{
    if (reception == BAD_CHECKSUM)
        counts->passed_checksum++;
    else if (reception == BAD_LENGTH)
        counts->passed_length++;
    else if (reception == BAD_TAGS)
        counts->passed_tags++;
}

/* Whether this interface has no hardware that completes checksums (veth, tun): there an intact packet has the pseudo-header's sum. */
MF_INLINE int accepts_partial_sums(uint32_t interface)
{
    const uint32_t MF_FAR *unsummed = MF_CONTROL->unsummed;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < MF_UNSUMMED_MAX && unsummed[i]); i++)
        if (unsummed[i] == interface)
            return 1;
    return 0;
}

/* Copies the frame's datagram to this CPU's scratch area; 0: pass the frame to the stack. */
MF_INLINE int is_received_by_xdp(struct xdp_md *context, struct mf_scratch MF_FAR **scratch)
{
    const uint8_t *data = (const uint8_t *)(long)context->data, *end = (const uint8_t *)(long)context->data_end;
    struct frame frame;
    if (PROGRAM_HEADER_BYTES) {
        uint32_t cpu = bpf_get_smp_processor_id();
        *scratch = mf_scratch_of(1 + cpu);
        if (MF_LIKELY(cpu + 1 < MF_SCRATCHES) && receive_plain(data, end, context->ingress_ifindex, *scratch))
            return 1;
    }
    if (!find_ip(data, end, &frame))
        return 0;
    enum relation relation = is_ours(data, end, &frame);
    if (MF_LIKELY(relation == FOREIGN))
        return 0;
    uint32_t cpu = bpf_get_smp_processor_id();
    if (cpu + 1 >= MF_SCRATCHES)
        return 0;
    *scratch = mf_scratch_of(1 + cpu);
    if (MF_UNLIKELY(relation == BAD_SENDER)) {
        (*scratch)->counts.passed_source++;
        return 0;
    }
    if (relation == ODD) {
        if (frame.type == TYPE_IPV4)
            count_odd_ipv4(data, end, frame.l3, &(*scratch)->counts);
        else
            count_odd_ipv6(data, end, frame.l3, &(*scratch)->counts);
        return 0;
    }
    frame.interface = context->ingress_ifindex;
    enum reception reception = receive(data, end, 0, 1, &frame, *scratch);
    count_reception(&(*scratch)->counts, reception);
    if (reception != RECEIVED)
        return 0;
    (*scratch)->is_whole = frame.whole;
    /* Only TC can ask the kernel whether the checksum was left to hardware. In generic mode TC also gets a sum that is right by chance: the
     * kernel may have marked the packet so that hardware would spoil the checksum of XDP's answer. */
    int doubtful = !frame.whole || MF_CONTROL->generic;
    return MF_LIKELY(!doubtful) || !is_left_to_hardware(&frame) || accepts_partial_sums(context->ingress_ifindex);
}

/* Whether the program decides the datagram that begins here by its header. */
MF_INLINE int is_decided(const uint8_t MF_FAR *data)
{
    (void)data;
    return PROGRAM_HEADER_BYTES && PROGRAM_DECIDES_BY_HEADER(data[offsetof(struct mf_header, operation)]);
}

/* Handles a frame; returns the XDP action. */
MF_INLINE int serve_frame(struct xdp_md *context)
{
    struct mf_scratch MF_FAR *scratch;
    if (!is_received_by_xdp(context, &scratch))
        return XDP_PASS;
    if (MF_UNLIKELY(!mf_lock())) {
        scratch->counts.passed_contended++;
        return XDP_PASS;
    }
    if (!is_decided(scratch->data) && owes_more(&scratch->in, longest_answer(context, &scratch->in))) {
        mf_unlock();
        return XDP_PASS;
    }
    take_from_frame(scratch);
    int is_cookie = is_cookie_owed(scratch);
    const struct mf_address MF_FAR *to = MF_UNLIKELY(is_cookie) ? &scratch->in.from : &scratch->out.forward.to;
    int is_known = (is_cookie || scratch->out.is_forwarded) && knows_hop(to, &scratch->other);
    mf_unlock();
    scratch->counts.xdp_taken++;
    if (MF_UNLIKELY(is_cookie) && !MF_MUTANT(62)) /* planted bug: a cookie goes back like any answer */
        return send_cookie(context, scratch, is_known);
    if (scratch->out.is_forwarded)
        return forward_by_xdp(context, scratch, is_known);
    return scratch->out.count == 0 ? XDP_DROP : answer_by_xdp(context, scratch);
}

SEC("xdp")
int mf_xdp(struct xdp_md *context)
{
    MF_USES_ARENA();
    return serve_frame(context);
}

#endif
