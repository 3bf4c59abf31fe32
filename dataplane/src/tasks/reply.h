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
    const struct mf_header *header = (const struct mf_header *)in->data;
    uint32_t records = header->count, right = fixed + record * records;
    if (MF_UNLIKELY(header->key != 0))
        return MF_V_UNKNOWN_KEY;
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
    header->tag = 0;
}

_Static_assert(MF_OUT_MAX >= 1 + MF_SUBMIT_MAX && MF_OUT_MAX >= 1 + MF_REGISTER_MAX, "an answer, and one ASSIGN each");

/* The next datagram. There is always room: MF_OUT_MAX covers the worst case of each operation, and tick stops. */
MF_INLINE struct mf_out_packet *next_packet(struct mf_out *out, const struct mf_address *to, uint32_t length)
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

/* How RETRIEVE, KEEPALIVE and RELEASE begin, and the answers RESET and RELEASED, which repeat the counter. */
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

/* A RESET or RELEASED without records yet. */
MF_INLINE struct mf_out_packet *counted_packet(const struct mf_tasks *s, const struct mf_datagram *in, struct mf_out *out,
                                               enum mf_operation operation)
{
    struct mf_out_packet *packet = next_packet(out, &in->from, sizeof(struct counted));
    put_header(s, packet->data, operation, 0, 0);
    ((struct counted *)packet->data)->counter = ((const struct counted *)in->data)->counter;
    return packet;
}

/* Appends a slot to RELEASED; opens the datagram with the first. */
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

/* Appends a wait that is void to RESET; opens the datagram with the first. */
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
MF_RARE enum mf_verdict put_reset_all(const struct mf_tasks *s MF_IN_ARENA, const struct mf_datagram *in MF_IN_ARENA,
                                      struct mf_out *out MF_IN_ARENA)
{
    MF_ARRIVE(s);
    MF_ARRIVE(in);
    MF_ARRIVE(out);
    counted_packet(s, in, out, MF_OP_RESET);
    return MF_V_FOREIGN_EPOCH;
}

/* What we speak, to who speaks another version. */
MF_RARE enum mf_verdict put_version(const struct mf_datagram *in MF_IN_ARENA, struct mf_out *out MF_IN_ARENA)
{
    MF_ARRIVE(in);
    MF_ARRIVE(out);
    mf_word *words = (mf_word *)next_packet(out, &in->from, sizeof(struct mf_version))->data;
    words[0] = mf_low_byte_first(header_start(MF_OP_VERSION));
    words[1] = 0;
    return MF_V_BAD_VERSION;
}

/* The ASSIGN to this address that has room: assignments to one executor share datagrams. */
MF_INLINE struct mf_out_packet *assign_packet(const struct mf_tasks *s, struct mf_out *out, const struct mf_address *to)
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
