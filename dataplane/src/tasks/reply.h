/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Writes answers into `struct mf_out`. */
#ifndef MIDFLIGHT_REPLY_H
#define MIDFLIGHT_REPLY_H

#include "arguments.h"
#include "shared/answer.h"

/* The arguments of rare packets' handlers. */
struct call {
    uint64_t now_ns;
    const struct mf_datagram *in;
    struct mf_out *out;
};

MF_INLINE uint32_t records_in(const struct call *call)
{
    return ((const struct mf_header *)call->in->data)->count;
}

MF_INLINE void put_header(const struct mf_tasks *s, uint8_t *data, enum mf_operation operation, uint32_t count,
                          uint32_t sequence)
{
    write_header(data, operation, count, s->epoch, sequence);
}

_Static_assert(MF_OUT_MAX >= 1 + MF_SUBMIT_MAX && MF_OUT_MAX >= 1 + MF_REGISTER_MAX, "an answer, and one ASSIGN each");

/* The start of RETRIEVE, KEEPALIVE, RELEASE, and of the answers RESET and RELEASED, which repeat the counter. */
struct MF_WIRE counted {
    struct mf_header header;
    uint64_t counter;
};

_Static_assert(offsetof(struct mf_retrieve, counter) == offsetof(struct counted, counter), "RETRIEVE begins so");
_Static_assert(sizeof(struct mf_keepalive) == sizeof(struct counted), "KEEPALIVE begins so");
_Static_assert(sizeof(struct mf_release) == sizeof(struct counted), "RELEASE begins so");
_Static_assert(sizeof(struct mf_reset) == sizeof(struct counted), "RESET begins so");
_Static_assert(sizeof(struct mf_released) == sizeof(struct counted), "RELEASED begins so");

MF_INLINE uint64_t counter_of(const struct mf_datagram *in)
{
    return mf_net64(((const struct counted *)in->data)->counter);
}

/* A RESET or RELEASED without records. */
MF_INLINE struct mf_out_packet *counted_packet(const struct mf_tasks *s, const struct mf_datagram *in, struct mf_out *out,
                                               enum mf_operation operation)
{
    struct mf_out_packet *packet = next_packet(out, &in->from, sizeof(struct counted));
    put_header(s, packet->data, operation, 0, 0);
    ((struct counted *)packet->data)->counter = ((const struct counted *)in->data)->counter;
    return packet;
}

/* Appends a slot to RELEASED, creating the datagram for the first. */
MF_INLINE void put_released(const struct mf_tasks *s, struct call *call, struct mf_out_packet **packet, uint32_t slot,
                            uint32_t generation)
{
    if (*packet == 0)
        *packet = counted_packet(s, call->in, call->out, MF_OP_RELEASED);
    struct mf_slot_name *name = (struct mf_slot_name *)((*packet)->data + (*packet)->length);
    name->slot = slot;
    name->generation = generation;
    (*packet)->length += sizeof(*name);
    header_of(*packet)->count++;
}

/* Appends a void wait to RESET, creating the datagram for the first. */
MF_INLINE void put_void(const struct mf_tasks *s, const struct mf_datagram *in, struct mf_out *out,
                        struct mf_out_packet **packet, const struct mf_wait *wait)
{
    if (*packet == 0)
        *packet = counted_packet(s, in, out, MF_OP_RESET);
    MF_COPY((struct mf_wait *)((*packet)->data + (*packet)->length), wait);
    (*packet)->length += sizeof(*wait);
    header_of(*packet)->count++;
}

/* RESET without records: all of the sender's slots are void. */
MF_RARE mf_verdict put_reset_all(const struct mf_tasks *s MF_IN_ARENA, const struct mf_datagram *in MF_IN_ARENA,
                                      struct mf_out *out MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    MF_FROM_ARENA(out);
    counted_packet(s, in, out, MF_OP_RESET);
    return MF_V_FOREIGN_EPOCH;
}

/* The last ASSIGN to this address, if an assignment with so many appended bytes fits, or a new one: assignments to one executor share
 * datagrams. */
MF_INLINE struct mf_out_packet *assign_packet(const struct mf_tasks *s, struct mf_out *out, const struct mf_address *to,
                                              uint32_t appended)
{
    for (uint32_t i = MF_ZERO; MF_LOOP(i < out->count && i < MF_OUT_MAX); i++) {
        struct mf_out_packet *packet = &out->packet[out->count - 1 - i];
        const struct mf_header *header = header_of(packet);
        if (header->operation != MF_OP_ASSIGN || !mf_address_equal(&packet->to, to))
            continue;
        if (header->count >= MF_SLOTS_MAX ||
            packet->length + packet->appended + sizeof(struct mf_assignment) + appended > MF_PACKET_MAX)
            break;
        packet->appended += appended;
        return packet;
    }
    struct mf_out_packet *packet = next_packet(out, to, sizeof(struct mf_assign));
    put_header(s, packet->data, MF_OP_ASSIGN, 0, 0);
    packet->appended = appended;
    return packet;
}

/* Appends an assignment, which the caller fills. */
MF_INLINE struct mf_assignment *add_assignment(struct mf_out_packet *packet)
{
    struct mf_assignment *a = (struct mf_assignment *)(packet->data + packet->length);
    packet->length += sizeof(*a);
    header_of(packet)->count++;
    return a;
}

MF_INLINE void put_assignment(struct mf_tasks *s, struct mf_assignment *a, const struct mf_wait *wait, uint32_t task,
                              uint64_t stamp, uint8_t attempt, uint32_t waited_us)
{
    const struct record *r = record_at(s, task);
    const struct client *client = client_at(s, r->client);
    a->token = *token_at(s, task);
    a->slot = wait->slot;
    a->generation = wait->generation;
    a->sequence = wait->sequence;
    a->waited_us = mf_net32(waited_us);
    MF_COPY(&a->task, &r->info);
    a->task.attempt = attempt;
    a->uid = client->uid;
    a->jid = r->jid;
    MF_COPY(&a->address, &client->address);
    a->submission = r->submission;
    put_byte(&a->index, (uint8_t)index_in(stamp));
}

#endif
