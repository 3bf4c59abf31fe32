/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Writes what a call owes to the network into `struct mf_out`. */
#ifndef MIDFLIGHT_REPLY_H
#define MIDFLIGHT_REPLY_H

#include "state.h"

/* What the handlers of rare packets get. */
struct call {
    uint64_t now_ns;
    const struct mf_datagram *in;
    struct mf_out *out;
};

MF_INLINE uint32_t records_in(const struct call *call)
{
    return ((const struct mf_header *)call->in->data)->count;
}

/* Whether count and length agree: what a handler asks before it looks at anything else (T11). */
MF_INLINE enum mf_verdict check_shape(const struct mf_datagram *in, uint32_t fixed, uint32_t record, uint32_t least,
                                      uint32_t most)
{
    uint32_t records = ((const struct mf_header *)in->data)->count, right = fixed + record * records;
    if (MF_UNLIKELY(records < least || records > most))
        return MF_V_BAD_COUNT;
    if (MF_UNLIKELY(in->length != right))
        return in->length < right ? MF_V_TRUNCATED : MF_V_TRAILING;
    return MF_V_OK;
}

/* A byte, and 0 into the three reserved ones behind it. */
MF_INLINE void put_byte(uint8_t *at, uint8_t byte)
{
    *(mf_word *)at = mf_low_byte_first((uint32_t)byte);
}

/* The first four bytes of a packet, as a number whose low byte is the first: magic, version, operation. */
MF_INLINE uint32_t header_start(uint32_t operation)
{
    return MF_MAGIC >> 8 | (MF_MAGIC & 0xff) << 8 | MF_VERSION << 16 | operation << 24;
}

MF_INLINE void put_header(const struct mf_tasks *s, uint8_t *data, enum mf_operation operation,
                          uint32_t count, uint32_t sequence)
{
    struct mf_header *header = (struct mf_header *)data;
    *(mf_word *)data = mf_low_byte_first(header_start(operation));
    put_byte(&header->count, (uint8_t)count);
    header->epoch = s->epoch;
    header->sequence = sequence;
}

_Static_assert(MF_OUT_MAX >= 1 + MF_SUBMIT_MAX && MF_OUT_MAX >= 1 + MF_REGISTER_MAX, "an answer, and one ASSIGN each");

/* The next datagram. There is always room: MF_OUT_MAX covers the worst case of each operation, and tick stops. */
MF_INLINE struct mf_out_packet *next_packet(struct mf_out *out, const struct mf_address *to,
                                                   uint32_t length)
{
    struct mf_out_packet *packet = &out->packet[out->count++];
    MF_COPY(&packet->to, to);
    packet->length = length;
    return packet;
}

/* The same where it is known to be the first of the call. */
MF_INLINE struct mf_out_packet *first_packet(struct mf_out *out, const struct mf_address *to, uint32_t length)
{
    struct mf_out_packet *packet = &out->packet[0];
    out->count = 1;
    MF_COPY(&packet->to, to);
    packet->length = length;
    return packet;
}

MF_INLINE struct mf_header *header_of(struct mf_out_packet *packet)
{
    return (struct mf_header *)packet->data;
}

/* Appends a slot to a list of names (RESET, RELEASED); opens the datagram with the first. */
MF_INLINE void put_name(const struct mf_tasks *s, struct call *call, struct mf_out_packet **packet,
                        enum mf_operation operation, uint32_t slot, uint32_t generation)
{
    if (*packet == 0) {
        *packet = next_packet(call->out, &call->in->from, sizeof(struct mf_header));
        put_header(s, (*packet)->data, operation, 0, 0);
    }
    struct mf_slot_name *name = (struct mf_slot_name *)((*packet)->data + (*packet)->length);
    name->slot = slot;
    name->generation = generation;
    (*packet)->length += sizeof(*name);
    header_of(*packet)->count++;
}

/* RESET without names: all of the sender's slots are void. */
MF_RARE enum mf_verdict put_reset_all(const struct mf_tasks *s MF_IN_ARENA, const struct mf_datagram *in MF_IN_ARENA,
                                      struct mf_out *out MF_IN_ARENA)
{
    MF_ARRIVE(s);
    MF_ARRIVE(in);
    MF_ARRIVE(out);
    struct mf_out_packet *packet = next_packet(out, &in->from, sizeof(struct mf_reset));
    put_header(s, packet->data, MF_OP_RESET, 0, 0);
    return MF_V_FOREIGN_EPOCH;
}

/* The ASSIGN to this address that has room: assignments to one executor share datagrams. */
MF_INLINE struct mf_out_packet *assign_packet(const struct mf_tasks *s, struct mf_out *out,
                                                     const struct mf_address *to)
{
    for (uint32_t i = MF_ZERO; MF_LOOP(i < out->count && i < MF_OUT_MAX); i++) {
        struct mf_out_packet *packet = &out->packet[i];
        struct mf_header *header = header_of(packet);
        if (header->operation == MF_OP_ASSIGN && header->count < MF_SLOTS_MAX && mf_address_equal(&packet->to, to))
            return packet;
    }
    struct mf_out_packet *packet = next_packet(out, to, sizeof(struct mf_assign));
    put_header(s, packet->data, MF_OP_ASSIGN, 0, 0);
    return packet;
}

/* The place of another assignment in an ASSIGN. */
MF_INLINE struct mf_assignment *add_assignment(struct mf_out_packet *packet)
{
    struct mf_assignment *a = (struct mf_assignment *)(packet->data + packet->length);
    packet->length += sizeof(*a);
    header_of(packet)->count++;
    return a;
}

/* Writes the answer to a wait. */
MF_INLINE void put_assignment(struct mf_tasks *s, struct mf_assignment *a, const struct mf_wait *wait,
                              const struct record *r, uint64_t stamp, uint8_t attempt, uint32_t waited_us)
{
    const struct client *client = client_at(s, r->client);
    a->client = client->identity;
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
