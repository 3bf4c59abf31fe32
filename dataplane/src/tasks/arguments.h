/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Appended arguments: they exceed the record and wait in blocks of their own, from SUBMIT until the task is done, because every repeated
 * or further ASSIGN carries them again.
 */
#ifndef MIDFLIGHT_ARGUMENTS_H
#define MIDFLIGHT_ARGUMENTS_H

#include "sources.h"

/* Bytes of the longest assignment. */
#define ASSIGNMENT_MAX (sizeof(struct mf_assignment) + MF_APPENDED_MAX)
_Static_assert(MF_APPENDED_MAX % MF_APPENDED_UNIT == 0 && BLOCK_BYTES % MF_APPENDED_UNIT == 0, "copied as whole units");
_Static_assert(sizeof(struct appended) == sizeof(struct mf_appended), "in place of it");

MF_INLINE uint32_t padded(uint32_t length)
{
    return (length + MF_APPENDED_UNIT - 1) & -(uint32_t)MF_APPENDED_UNIT;
}

/* Bytes that a task's argument adds to a packet behind its records. */
MF_INLINE uint32_t appended_bytes(const struct mf_task_info *info)
{
    return MF_LIKELY(info->argument_length != MF_APPENDED) ? 0 : padded(appended_length(info));
}

/* An argument fills all its blocks but the last. */
MF_INLINE void copy_block(uint8_t *to, const uint8_t *from)
{
#ifdef __bpf__
    _Pragma("unroll") for (uint32_t i = 0; i < BLOCK_BYTES / sizeof(mf_long); i++)
        ((mf_long *)to)[i] = ((const mf_long *)from)[i];
#else
    __builtin_memcpy(to, from, BLOCK_BYTES);
#endif
}

/* Copies a multiple of MF_APPENDED_UNIT bytes. */
MF_INLINE void copy_units(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
#ifdef __bpf__
    for (uint32_t at = MF_ZERO; MF_LOOP(at < bytes); at += sizeof(mf_long))
        *(mf_long *)(to + at) = *(const mf_long *)(from + at);
#else
    __builtin_memcpy(to, from, bytes);
#endif
}

/* Why an argument finds no room, or MF_V_OK. */
MF_INLINE mf_verdict refuse_argument(struct mf_tasks *s, uint32_t source, uint32_t length)
{
    uint32_t free = s->blocks.capacity - s->blocks.used;
    if (free < blocks_of(length))
        return MF_V_ARGUMENTS_FULL;
    return is_within_share(source_at(s, source)->blocks, free) ? MF_V_OK : MF_V_ARGUMENTS_SHARE;
}

/* Copies an argument into blocks, for which there is room. */
MF_INLINE void keep_argument(struct mf_tasks *s, uint32_t client, struct mf_task_info *info, const uint8_t *from)
{
    struct client *c = client_at(s, client);
    uint32_t bytes = appended_bytes(info), full = (bytes - 1) / BLOCK_BYTES, i = take_block(s);
    c->blocks += full + 1;
    source_at(s, c->source)->blocks += full + 1;
    ((struct appended *)info->argument)->first = i;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < full); k++) {
        struct block *block = block_at(s, i);
        copy_block(block->bytes, from);
        from += BLOCK_BYTES;
        block->next = i = take_block(s);
    }
    copy_units(block_at(s, i)->bytes, from, bytes - full * BLOCK_BYTES);
}

/* The call's note, while a SUBMIT with appended arguments is handled: how many of its tasks have their arguments in blocks, and why the
 * next one has not (a verdict). */
#define ARE_KEPT 0x80000000u
#define REFUSED_SHIFT 8

/* Copies the appended arguments of a SUBMIT into blocks before its tasks are accepted, and the numbers of their first blocks into the
 * packet's records. Returns how many tasks may be accepted: until one finds no room. */
MF_RARE uint32_t keep_arguments(struct mf_tasks *s MF_IN_ARENA, uint32_t client, struct mf_submit *packet MF_IN_ARENA,
                                struct mf_out *out MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(packet);
    MF_FROM_ARENA(out);
    struct mf_task_info *info = (struct mf_task_info *)(packet + 1);
    uint32_t records = packet->header.count, k = MF_ZERO;
    const uint8_t *from = (const uint8_t *)(info + records);
    mf_verdict refused = MF_V_OK;
    for (; MF_LOOP(k < records && k < MF_SUBMIT_MAX); k++, info++) {
        if (info->argument_length != MF_APPENDED)
            continue;
        refused = refuse_argument(s, client_at(s, client)->source, appended_length(info));
        if (refused != MF_V_OK)
            break;
        keep_argument(s, client, info, from);
        from += appended_bytes(info);
    }
    out->note = ARE_KEPT | (uint32_t)refused << REFUSED_SHIFT | k;
    return k;
}

/* The same SUBMIT once `accepted` of its tasks are in the queue. If the queue took fewer than have their arguments in blocks, frees those
 * of the others and returns 0. Otherwise returns the verdict of the first task without room for its argument. */
MF_RARE uint32_t settle_arguments(struct mf_tasks *s MF_IN_ARENA, uint32_t client, const struct mf_submit *packet MF_IN_ARENA,
                                  struct mf_out *out MF_IN_ARENA, uint32_t accepted)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(packet);
    MF_FROM_ARENA(out);
    const struct mf_task_info *info = (const struct mf_task_info *)(packet + 1) + accepted;
    uint32_t kept = out->note % (1u << REFUSED_SHIFT), refused = (out->note & ~ARE_KEPT) >> REFUSED_SHIFT;
    out->note = 0;
    if (accepted == kept)
        return refused;
    for (uint32_t k = accepted; MF_LOOP(k < kept && k < MF_SUBMIT_MAX); k++, info++)
        if (info->argument_length == MF_APPENDED)
            drop_argument(s, client, info);
    return MF_V_OK;
}

/* Copies a record's argument behind the records of an ASSIGN. */
MF_RARE int put_argument(struct mf_tasks *s MF_IN_ARENA, uint8_t *to MF_IN_ARENA, uint32_t task)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(to);
    const struct mf_task_info *info = &record_at(s, task)->info;
    uint32_t bytes = appended_bytes(info), full = (bytes - 1) / BLOCK_BYTES, i = appended_of(info)->first;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < full); k++) {
        if (!(MF_MUTANT(99) && k == 2)) /* planted bug: the third block is not sent */
            copy_block(to, block_at(s, i)->bytes);
        to += BLOCK_BYTES;
        i = block_at(s, i)->next;
    }
    copy_units(to, block_at(s, i)->bytes, bytes - full * BLOCK_BYTES);
    return 0;
}

/* Ends an ASSIGN with the arguments of its tasks. Slots still have the tasks that this call gave them. */
MF_RARE int put_arguments(struct mf_tasks *s MF_IN_ARENA, struct mf_out_packet *packet MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(packet);
    struct mf_assignment *a = (struct mf_assignment *)(packet->data + sizeof(struct mf_assign));
    uint32_t count = ((const struct mf_header *)packet->data)->count;
    uint8_t *to = packet->data + packet->length;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < count && k < MF_SLOTS_MAX); k++, a++) {
        if (a->task.argument_length != MF_APPENDED)
            continue;
        ((struct appended *)a->task.argument)->first = 0;
        put_argument(s, to, slot_at(s, mf_net32(a->slot))->record);
        to += appended_bytes(&a->task);
    }
    packet->length += packet->appended;
    return 0;
}

/* Ends all ASSIGNs of a call with their arguments. */
MF_RARE int put_all_arguments(struct mf_tasks *s MF_IN_ARENA, struct mf_out *out MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(out);
    for (uint32_t i = MF_ZERO; MF_LOOP(i < out->count && i < MF_OUT_MAX); i++) {
        struct mf_out_packet *packet = &out->packet[i];
        if (((const struct mf_header *)packet->data)->operation == MF_OP_ASSIGN && packet->appended != 0)
            put_arguments(s, packet);
    }
    return 0;
}

#endif
