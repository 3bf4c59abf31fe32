/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Handlers of REGISTER, KEEPALIVE and RELEASE. RETRIEVE is in retrieve.h. */
#ifndef MIDFLIGHT_FROM_EXECUTOR_H
#define MIDFLIGHT_FROM_EXECUTOR_H

#include "retrieve.h"
#include "slots.h"

/* The reason in REGISTERED why not all slots were registered. */
MF_INLINE enum mf_reason reason_of(mf_verdict refused)
{
    switch (refused) {
    case MF_V_SLOTS_FULL:
        return MF_REASON_SLOTS_FULL;
    case MF_V_SLOTS_SHARE:
        return MF_REASON_SHARE;
    case MF_V_STALE_REGISTER:
        return MF_REASON_TOO_OLD;
    default:
        return MF_REASON_NONE;
    }
}

MF_HANDLER mf_verdict handle_register(struct mf_tasks *s, struct call *call)
{
    const struct mf_register *packet = (const struct mf_register *)call->in->data;
    mf_verdict verdict = check_shape(call->in, sizeof(*packet), 0, 1, MF_REGISTER_MAX), refused = MF_V_OK;
    if (verdict != MF_V_OK)
        return verdict;
    if (!has_cookie(s, call->now_ns, call->in))
        return put_cookie(s, call->now_ns, call->in, call->out);
    struct mf_out_packet *answer = next_packet(call->out, &call->in->from, sizeof(struct mf_registered));
    struct mf_registered *registered = (struct mf_registered *)answer->data;
    struct mf_slot_name *names = (struct mf_slot_name *)(answer->data + sizeof(*registered));
    uint32_t given_back = NONE;
    uint32_t k = MF_ZERO, first = mf_net32(packet->first);
    put_header(s, answer->data, MF_OP_REGISTERED, 0, packet->header.sequence);
    for (; MF_LOOP(k < records_in(call) && k < MF_REGISTER_MAX); k++) {
        uint32_t i = NONE, task = NONE;
        refused = register_slot(s, call, first + k, &i, &task);
        if (refused != MF_V_OK)
            break;
        given_back = give_back(s, given_back, task);
        names[k].slot = mf_net32(i);
        names[k].generation = mf_net32(slot_at(s, i)->generation);
    }
    if (refused != MF_V_OK)
        *MF_AT(s, stats.reasons, refused) += records_in(call) - k;
    header_of(answer)->count = (uint8_t)k;
    answer->length += k * sizeof(*names);
    registered->executor = packet->executor;
    registered->first = packet->first;
    registered->lease_ms = mf_net32((uint32_t)(s->lease_ns / 1000000));
    MF_COPY(&registered->seen, &call->in->from);
    registered->reason = (uint8_t)reason_of(refused);
    registered->reserved = 0;
    registered->poll_us = 0; /* a slot that finds no task is parked */
    requeue_all(s, call, given_back);
    return MF_V_OK;
}

/* Renews the lease of a slot whose task still runs, if the task answered this wait. Returns the outcome of name_slot. */
static mf_verdict keep_alive(struct mf_tasks *s, struct call *call, const struct mf_wait *wait)
{
    uint32_t i = mf_net32(wait->slot);
    mf_verdict named = name_slot(s, call->in, i, mf_net32(wait->generation), counter_of(call->in));
    if (named != MF_V_OK)
        count(s, named);
    else if (slot_at(s, i)->sequence != mf_net32(wait->sequence))
        count(s, MF_V_STALE_WAIT);
    else
        slot_at(s, i)->heard_ns = call->now_ns;
    return named;
}

#define PROOF_OF_STOP 3ull /* docs/wire.md, "Proofs" */

/* Whether the task that answered this wait is no longer wanted. */
MF_INLINE int runs_unwanted(struct mf_tasks *s, const struct mf_wait *wait)
{
    const struct slot *slot = slot_at(s, mf_net32(wait->slot));
    return slot->state == SLOT_ASSIGNED && slot->sequence == mf_net32(wait->sequence) &&
           is_unwanted(s, record_at(s, slot->record));
}

/* The proof of a STOP's record (docs/wire.md, "Proofs"). */
MF_RARE uint64_t stop_proof(uint64_t token, uint32_t submission, uint32_t index)
{
    struct siphash h = siphash_start(token, PROOF_OF_STOP);
    siphash_word(&h, 0);
    siphash_word(&h, (uint64_t)index << 32 | __builtin_bswap32(submission));
    return siphash_end(&h, sizeof(struct mf_run_name));
}

/* Answers a KEEPALIVE with the unwanted tasks (a bitmap), which their clients can no longer cancel. */
static void put_stop(struct mf_tasks *s, struct call *call, uint32_t unwanted)
{
    const struct mf_wait *waits = (const struct mf_wait *)(call->in->data + sizeof(struct mf_keepalive));
    struct mf_out_packet *stop = next_packet(call->out, &call->in->from, sizeof(struct mf_stop));
    struct mf_run_name *names = (struct mf_run_name *)(stop->data + sizeof(struct mf_stop));
    uint32_t count = MF_ZERO;
    put_header(s, stop->data, MF_OP_STOP, 0, 0);
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records_in(call) && k < MF_REGISTER_MAX); k++) {
        if (!(unwanted >> k & 1) || (MF_MUTANT(95) && count >= 2))
            continue;
        uint32_t task = slot_at(s, mf_net32(waits[k].slot))->record;
        const struct record *r = record_at(s, task);
        struct mf_run_name *name = &names[count++ % MF_CANCEL_MAX];
        name->proof = mf_net64(stop_proof(mf_net64(*token_at(s, task)), mf_net32(r->submission), index_of(r)));
        name->submission = r->submission;
        put_byte(&name->index, (uint8_t)index_of(r));
    }
    s->stats.stops += count;
    stop->length += count * sizeof(*names);
    header_of(stop)->count = (uint8_t)count;
}

/* Whether the answer to a KEEPALIVE may exceed `room` bytes. */
MF_INLINE int keepalive_owes_more(const struct mf_datagram *in, uint32_t room)
{
    uint32_t records = ((const struct mf_header *)in->data)->count;
    return sizeof(struct mf_stop) + records * sizeof(struct mf_run_name) > room;
}

/* A KEEPALIVE with epoch 0 asks whether a switch lives here. The RESET that answers it has sequence 1 if the switch still knows the slot
 * that the sender named. */
static mf_verdict answer_question(struct mf_tasks *s, struct call *call, const struct mf_wait *wait)
{
    uint32_t i = mf_net32(wait->slot);
    int is_known = is_registered(s, i, mf_net32(wait->generation)) &&
                   mf_address_equal(&slot_at(s, i)->address, &call->in->from);
    put_reset_all(s, call->in, call->out);
    header_of(&call->out->packet[0])->sequence = mf_net32((uint32_t)is_known);
    return MF_V_OK;
}

MF_HANDLER mf_verdict handle_keepalive(struct mf_tasks *s, struct call *call)
{
    const struct mf_keepalive *packet = (const struct mf_keepalive *)call->in->data;
    const struct mf_wait *waits = (const struct mf_wait *)(call->in->data + sizeof(*packet));
    struct mf_out_packet *reset = 0;
    uint32_t unwanted = MF_ZERO;
    mf_verdict verdict = check_shape(call->in, sizeof(*packet), sizeof(*waits), 1, MF_REGISTER_MAX);
    if (verdict != MF_V_OK)
        return verdict;
    if (packet->header.epoch == 0)
        return answer_question(s, call, waits);
    if (packet->header.epoch != s->epoch)
        return put_reset_all(s, call->in, call->out);
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records_in(call) && k < MF_REGISTER_MAX); k++) {
        mf_verdict named = keep_alive(s, call, &waits[k]);
        if (named == MF_V_FOREIGN_SLOT || named == MF_V_SPOOFED_SLOT)
            put_void(s, call->in, call->out, &reset, &waits[k]);
        else if (named == MF_V_OK && runs_unwanted(s, &waits[k]))
            unwanted |= 1u << k;
    }
    if (unwanted != 0 && reset == 0) /* one answer only: otherwise the next KEEPALIVE gets it */
        put_stop(s, call, unwanted);
    return MF_V_OK;
}

/* For a task whose attempt has not begun: the next attempt gets the same number. */
MF_INLINE void undo_attempt(struct mf_tasks *s, uint32_t task)
{
    uint8_t *attempt = &record_at(s, task)->info.attempt;
    *attempt -= *attempt < 255;
}

/* One slot leaves or returns its task. Returns whether that was done; sets `*task` to a returned task. */
static int leave(struct mf_tasks *s, struct call *call, const struct mf_leave *record, uint32_t *task)
{
    uint32_t i = mf_net32(record->slot);
    mf_verdict named = name_slot(s, call->in, i, mf_net32(record->generation), counter_of(call->in));
    if (named == MF_V_FOREIGN_SLOT)
        return 1; /* a repeat, or the switch had freed the slot already */
    if (named != MF_V_OK) {
        count(s, named);
        return 0;
    }
    struct slot *slot = slot_at(s, i);
    int32_t ahead = mf_serial_distance(mf_net32(record->sequence), slot->sequence);
    if (ahead < 0) {
        count(s, MF_V_STALE_WAIT);
        return 0;
    }
    if (slot->state == SLOT_WAITING) {
        unpark(s, i);
    } else if (slot->state == SLOT_ASSIGNED && (ahead > 0 || (record->done && record->done != MF_LEAVE_STAYS))) {
        finish_task(s, call->now_ns, slot);
        take_from_slot(slot);
    } else if (slot->state == SLOT_ASSIGNED) {
        s->stats.returned++;
        *task = take_from_slot(slot);
        if (record->done == MF_LEAVE_STAYS)
            undo_attempt(s, *task);
    }
    if (record->done == MF_LEAVE_STAYS) {
        slot->sequence = mf_net32(record->sequence);
        slot->spent = 1;
        slot->heard_ns = call->now_ns;
    } else {
        vacate(s, i);
    }
    return 1;
}

MF_HANDLER mf_verdict handle_release(struct mf_tasks *s, struct call *call)
{
    const struct mf_release *packet = (const struct mf_release *)call->in->data;
    const struct mf_leave *records = (const struct mf_leave *)(call->in->data + sizeof(*packet));
    uint32_t given_back = NONE;
    struct mf_out_packet *released = 0;
    mf_verdict verdict = check_shape(call->in, sizeof(*packet), sizeof(*records), 1, MF_SLOTS_MAX);
    if (verdict != MF_V_OK)
        return verdict;
    if (packet->header.epoch != s->epoch)
        return put_reset_all(s, call->in, call->out);
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records_in(call) && k < MF_SLOTS_MAX); k++) {
        uint32_t task = NONE;
        if (leave(s, call, &records[k], &task))
            put_released(s, call, &released, records[k].slot, records[k].generation);
        given_back = give_back(s, given_back, task);
    }
    requeue_all(s, call, given_back);
    return MF_V_OK;
}

#endif
