/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Writes what a call owes to the network into `struct mf_out`. */
#ifndef MIDFLIGHT_REPLY_H
#define MIDFLIGHT_REPLY_H

#include "state.h"

/* What every handler gets. */
struct call {
    uint64_t now_ns;
    const struct mf_datagram MF_FAR *in;
    struct mf_out MF_FAR *out;
};

MF_INLINE uint32_t records_in(const struct call *call)
{
    return ((const struct mf_header MF_FAR *)call->in->data)->count;
}

/* Whether count and length agree: what a handler asks before it looks at anything else (T11). */
MF_INLINE enum mf_verdict check_shape(const struct call *call, uint32_t fixed, uint32_t record, uint32_t least,
                                      uint32_t most)
{
    uint32_t records = records_in(call), right = fixed + record * records;
    if (MF_UNLIKELY(records < least || records > most))
        return MF_V_BAD_COUNT;
    if (MF_UNLIKELY(call->in->length != right))
        return call->in->length < right ? MF_V_TRUNCATED : MF_V_TRAILING;
    return MF_V_OK;
}

MF_INLINE void put_header(const struct mf_tasks MF_FAR *s, uint8_t MF_FAR *data, enum mf_operation operation,
                          uint32_t count, uint32_t sequence)
{
    struct mf_header MF_FAR *header = (struct mf_header MF_FAR *)data;
    header->magic = mf_net16(MF_MAGIC);
    header->version = MF_VERSION;
    header->operation = operation;
    header->count = (uint8_t)count;
    header->flags = 0;
    header->reserved = 0;
    header->epoch = s->epoch;
    header->sequence = sequence;
}

_Static_assert(MF_OUT_MAX >= 1 + MF_SUBMIT_MAX && MF_OUT_MAX >= 1 + MF_REGISTER_MAX, "an answer, and one ASSIGN each");

/* A byte, and 0 into the three reserved ones behind it. */
MF_INLINE void put_byte(uint8_t MF_FAR *at, uint8_t byte)
{
    *(mf_word MF_FAR *)at = mf_low_byte_first((uint32_t)byte);
}

/* The next datagram. There is always room: MF_OUT_MAX covers the worst case of each operation, and tick stops. */
MF_INLINE struct mf_out_packet MF_FAR *next_packet(struct mf_out MF_FAR *out, const struct mf_address MF_FAR *to,
                                                   uint32_t length)
{
    struct mf_out_packet MF_FAR *packet = &out->packet[out->count++];
    MF_COPY(&packet->to, to);
    packet->length = length;
    return packet;
}

/* The same where it is known to be the first of the call. */
MF_INLINE struct mf_out_packet MF_FAR *first_packet(struct call *call, uint32_t length)
{
    struct mf_out_packet MF_FAR *packet = &call->out->packet[0];
    call->out->count = 1;
    MF_COPY(&packet->to, &call->in->from);
    packet->length = length;
    return packet;
}

MF_INLINE struct mf_header MF_FAR *header_of(struct mf_out_packet MF_FAR *packet)
{
    return (struct mf_header MF_FAR *)packet->data;
}

/* Appends a slot to a list of names (RESET, RELEASED); opens the datagram with the first. */
MF_INLINE void put_name(const struct mf_tasks MF_FAR *s, struct call *call, struct mf_out_packet MF_FAR **packet,
                        enum mf_operation operation, uint32_t slot, uint32_t generation)
{
    if (*packet == 0) {
        *packet = next_packet(call->out, &call->in->from, sizeof(struct mf_header));
        put_header(s, (*packet)->data, operation, 0, 0);
    }
    struct mf_slot_name MF_FAR *name = (struct mf_slot_name MF_FAR *)((*packet)->data + (*packet)->length);
    name->slot = slot;
    name->generation = generation;
    (*packet)->length += sizeof(*name);
    header_of(*packet)->count++;
}

/* RESET without names: all of the sender's slots are void. */
static void put_reset_all(const struct mf_tasks MF_FAR *s, struct call *call)
{
    struct mf_out_packet MF_FAR *packet = next_packet(call->out, &call->in->from, sizeof(struct mf_reset));
    put_header(s, packet->data, MF_OP_RESET, 0, 0);
}

/* The ASSIGN to this address that has room: assignments to one executor share datagrams. */
MF_INLINE struct mf_out_packet MF_FAR *assign_packet(const struct mf_tasks MF_FAR *s, struct mf_out MF_FAR *out,
                                                     const struct mf_address MF_FAR *to)
{
    for (uint32_t i = MF_ZERO; MF_LOOP(i < out->count && i < MF_OUT_MAX); i++) {
        struct mf_out_packet MF_FAR *packet = &out->packet[i];
        struct mf_header MF_FAR *header = header_of(packet);
        if (header->operation == MF_OP_ASSIGN && header->count < MF_SLOTS_MAX && mf_address_equal(&packet->to, to))
            return packet;
    }
    struct mf_out_packet MF_FAR *packet = next_packet(out, to, sizeof(struct mf_assign));
    put_header(s, packet->data, MF_OP_ASSIGN, 0, 0);
    return packet;
}

/* The ASSIGN that answers a RETRIEVE: its slots are all the sender's, and fit one datagram. */
MF_INLINE struct mf_out_packet MF_FAR *answer_packet(const struct mf_tasks MF_FAR *s, struct call *call)
{
    if (call->out->count == 0)
        put_header(s, first_packet(call, sizeof(struct mf_assign))->data, MF_OP_ASSIGN, 0, 0);
    return &call->out->packet[0];
}

/* Appends the answer to a wait to its ASSIGN. */
MF_INLINE void put_assignment(struct mf_tasks MF_FAR *s, struct mf_out_packet MF_FAR *packet, struct mf_wait wait,
                              const struct record MF_FAR *r, uint8_t attempt, uint32_t waited_us)
{
    const struct client MF_FAR *client = client_at(s, r->client);
    struct mf_assignment MF_FAR *a = (struct mf_assignment MF_FAR *)(packet->data + packet->length);
    packet->length += sizeof(*a);
    header_of(packet)->count++;
    a->client = client->identity;
    a->slot = wait.slot;
    a->generation = wait.generation;
    a->sequence = wait.sequence;
    a->waited_us = mf_net32(waited_us);
    MF_COPY(&a->task, &r->info);
    a->task.attempt = attempt;
    a->uid = client->uid;
    a->jid = r->jid;
    MF_COPY(&a->address, &client->address);
    a->submission = r->submission;
    put_byte(&a->index, (uint8_t)index_of(r));
}

#endif
