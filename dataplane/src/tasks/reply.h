/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Writes what a call owes to the network into `struct mf_out`. */
#ifndef MIDFLIGHT_REPLY_H
#define MIDFLIGHT_REPLY_H

#include "state.h"

/* What every handler gets. */
struct call {
    uint64_t now_ns;
    const struct mf_address *from;
    const uint8_t *data;
    uint32_t length;
    uint32_t count; /* records */
    struct mf_out *out;
};

/* Whether count and length agree: what a handler asks before it looks at anything else (T11). */
MF_INLINE enum mf_verdict check_shape(const struct call *call, uint32_t fixed, uint32_t record, uint32_t least,
                                      uint32_t most)
{
    uint32_t right = fixed + record * call->count;
    if (call->count < least || call->count > most)
        return MF_V_BAD_COUNT;
    if (MF_UNLIKELY(call->length != right))
        return call->length < right ? MF_V_TRUNCATED : MF_V_TRAILING;
    return MF_V_OK;
}

MF_INLINE void put_header(const struct mf_tasks *s, uint8_t *data, enum mf_operation operation, uint32_t count,
                          uint32_t sequence)
{
    struct mf_header *header = (struct mf_header *)data;
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

/* The next datagram. There is always room: MF_OUT_MAX covers the worst case of each operation, and tick stops. */
MF_INLINE struct mf_out_packet *next_packet(struct mf_out *out, const struct mf_address *to, uint32_t length)
{
    struct mf_out_packet *packet = &out->packet[out->count++];
    packet->to = *to;
    packet->length = length;
    return packet;
}

MF_INLINE struct mf_header *header_of(struct mf_out_packet *packet)
{
    return (struct mf_header *)packet->data;
}

/* Appends a slot to a list of names (RESET, RELEASED); opens the datagram with the first. */
static void put_name(const struct mf_tasks *s, struct call *call, struct mf_out_packet **packet,
                     enum mf_operation operation, struct mf_slot_name name)
{
    if (*packet == 0) {
        *packet = next_packet(call->out, call->from, sizeof(struct mf_header));
        put_header(s, (*packet)->data, operation, 0, 0);
    }
    __builtin_memcpy((*packet)->data + (*packet)->length, &name, sizeof(name));
    (*packet)->length += sizeof(name);
    header_of(*packet)->count++;
}

/* RESET without names: all of the sender's slots are void. */
static void put_reset_all(const struct mf_tasks *s, struct call *call)
{
    struct mf_out_packet *packet = next_packet(call->out, call->from, sizeof(struct mf_reset));
    put_header(s, packet->data, MF_OP_RESET, 0, 0);
}

/* The ASSIGN to this address that has room: assignments to one executor share datagrams. */
MF_INLINE struct mf_out_packet *assign_packet(const struct mf_tasks *s, struct mf_out *out,
                                              const struct mf_address *to)
{
    for (uint32_t i = 0; i < out->count && i < MF_OUT_MAX; i++) {
        struct mf_out_packet *packet = &out->packet[i];
        struct mf_header *header = header_of(packet);
        if (header->operation == MF_OP_ASSIGN && header->count < MF_SLOTS_MAX && mf_address_equal(&packet->to, to))
            return packet;
    }
    struct mf_out_packet *packet = next_packet(out, to, sizeof(struct mf_assign));
    put_header(s, packet->data, MF_OP_ASSIGN, 0, 0);
    return packet;
}

MF_INLINE void put_assignment(struct mf_tasks *s, struct mf_out *out, uint32_t slot_number, const struct slot *slot,
                              const struct record *r, uint8_t attempt, uint64_t waited_us)
{
    const struct client *client = client_at(s, r->client);
    struct mf_out_packet *packet = assign_packet(s, out, &slot->address);
    struct mf_assignment *a = (struct mf_assignment *)(packet->data + packet->length);
    a->client = client->identity;
    a->slot = mf_net32(slot_number);
    a->generation = mf_net32(slot->generation);
    a->sequence = mf_net32(slot->sequence);
    a->waited_us = mf_net32(waited_us > 0xffffffffu ? 0xffffffffu : (uint32_t)waited_us);
    a->task = r->info;
    a->task.attempt = attempt;
    a->uid = r->uid;
    a->jid = r->jid;
    a->address = client->address;
    a->submission = mf_net32(r->submission);
    a->index = r->index;
    a->reserved[0] = a->reserved[1] = a->reserved[2] = 0;
    packet->length += sizeof(*a);
    header_of(packet)->count++;
}

#endif
