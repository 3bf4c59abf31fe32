/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Used by all programs: reads a datagram's header, writes answers, forwards. */
#ifndef MIDFLIGHT_ANSWER_H
#define MIDFLIGHT_ANSWER_H

#include "bytes.h"
#include "mutant.h"
#include "midflight/switch.h"

/* Writes a byte and three reserved zero bytes by one store. */
MF_INLINE void put_byte(uint8_t *at, uint8_t byte)
{
    *(mf_word *)at = mf_low_byte_first((uint32_t)byte);
}

/* The first four bytes of a packet (magic, version, operation) as a number, first byte lowest. */
MF_INLINE uint32_t header_start(uint32_t operation)
{
    return MF_MAGIC >> 8 | (MF_MAGIC & 0xff) << 8 | MF_VERSION << 16 | operation << 24;
}

/* `epoch` and `sequence` in network byte order. */
MF_INLINE void write_header(uint8_t *data, uint32_t operation, uint32_t count, uint32_t epoch, uint32_t sequence)
{
    struct mf_header *header = (struct mf_header *)data;
    *(mf_word *)data = mf_low_byte_first(header_start(operation));
    put_byte(&header->count, (uint8_t)count);
    header->epoch = epoch;
    header->sequence = sequence;
    header->tag = 0;
}

MF_INLINE void owe_nothing(struct mf_out *out)
{
    out->count = out->is_genuine = out->is_forwarded = out->note = 0;
}

/* Appends a datagram. There is always room: MF_OUT_MAX covers the worst case of each operation, and a tick stops there. */
MF_INLINE struct mf_out_packet *next_packet(struct mf_out *out, const struct mf_address *to, uint32_t length)
{
    struct mf_out_packet *packet = &out->packet[out->count++];
    MF_COPY(&packet->to, to);
    packet->length = length;
    return packet;
}

/* The same for the call's first datagram: saves reading `count`. */
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

MF_RARE mf_verdict put_version(const struct mf_datagram *in MF_IN_ARENA, struct mf_out *out MF_IN_ARENA)
{
    MF_FROM_ARENA(in);
    MF_FROM_ARENA(out);
    mf_word *words = (mf_word *)next_packet(out, &in->from, sizeof(struct mf_version))->data;
    words[0] = mf_low_byte_first(header_start(MF_OP_VERSION));
    words[1] = 0;
    return MF_V_BAD_VERSION;
}

/* Whether a datagram has its records. Every handler checks this first (T11); something may follow them. */
MF_INLINE mf_verdict check_least(const struct mf_datagram *in, uint32_t fixed, uint32_t record, uint32_t least, uint32_t most)
{
    const struct mf_header *header = (const struct mf_header *)in->data;
    uint32_t records = header->count;
    if (MF_UNLIKELY(header->key != 0))
        return MF_V_UNKNOWN_KEY;
    if (MF_UNLIKELY(records < least || records > most))
        return MF_V_BAD_COUNT;
    return MF_UNLIKELY(in->length < fixed + record * records) ? MF_V_TRUNCATED : MF_V_OK;
}

/* The same for packets that end with their records. */
MF_INLINE mf_verdict check_shape(const struct mf_datagram *in, uint32_t fixed, uint32_t record, uint32_t least, uint32_t most)
{
    uint32_t records = ((const struct mf_header *)in->data)->count;
    if (MF_MUTANT(17) && records > 16) /* planted bug: bytes after many records are ignored */
        return check_least(in, fixed, record, least, most);
    if (MF_LIKELY(in->length == fixed + record * records) && MF_LIKELY(((const struct mf_header *)in->data)->key == 0) &&
        MF_LIKELY(records - least <= most - least))
        return MF_V_OK;
    mf_verdict verdict = check_least(in, fixed, record, least, most);
    return verdict == MF_V_OK ? MF_V_TRAILING : verdict;
}

/* Checks the start of a datagram against this version of the format. */
MF_INLINE mf_verdict check_start(const struct mf_datagram *in, struct mf_out *out)
{
    const struct mf_header *header = (const struct mf_header *)in->data;
    if (in->length < sizeof(struct mf_version))
        return MF_V_TRUNCATED;
    if (header->magic != mf_net16(MF_MAGIC))
        return MF_V_BAD_MAGIC;
    if (header->operation == MF_OP_VERSION)
        return MF_V_NOT_FOR_SWITCH;
    if (header->version != MF_VERSION)
        return put_version(in, out);
    return in->length < sizeof(*header) ? MF_V_TRUNCATED : MF_V_OK;
}

/* Forwards a datagram, of which the program may have rewritten the first `header` bytes. */
MF_INLINE mf_verdict forward(const struct mf_datagram *in, struct mf_out *out, const struct mf_address *to, uint32_t header)
{
    MF_COPY(&out->forward.to, to);
    out->forward.copy_to.port = 0;
    out->forward.header = header;
    out->forward.length = in->length;
    out->is_forwarded = 1;
    return MF_V_FORWARDED;
}

#endif
