/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Tasks meet slots. T6 holds between any two calls: no parked slot may run a queued task. */
#ifndef MIDFLIGHT_ASSIGN_H
#define MIDFLIGHT_ASSIGN_H

#include "parking.h"
#include "queue.h"
#include "reply.h"

/* The histogram's bucket: 0 below 1 us, b for [2^(b-1), 2^b) us. */
MF_INLINE uint32_t wait_bucket(uint64_t us)
{
    uint32_t bucket = mf_highest_bit(us << 1 | 1);
    return bucket < MF_WAIT_BUCKETS ? bucket : MF_WAIT_BUCKETS - 1;
}

/* From a task's acceptance to now, in microseconds. */
MF_INLINE uint64_t waited(const struct record MF_FAR *r, uint64_t now_ns)
{
    uint64_t accepted_ns = key_of(r) << KEY_SHIFT;
    return now_ns > accepted_ns ? (now_ns - accepted_ns) / 1000 : 0;
}

/* Gives a task that is in no list to a slot that is in none, as the answer to its wait. */
MF_INLINE void assign(struct mf_tasks MF_FAR *s, struct mf_out_packet MF_FAR *packet, struct mf_wait wait, uint64_t now_ns,
                      uint32_t task, struct slot MF_FAR *slot)
{
    struct record MF_FAR *r = record_at(s, task);
    uint64_t waited_us = waited(r, now_ns);
    slot->waited_us = waited_us > 0xffffffffu ? 0xffffffffu : (uint32_t)waited_us;
    slot->state = SLOT_ASSIGNED;
    slot->record = task;
    uint8_t attempt = r->info.attempt + (r->info.attempt != 255);
    put_assignment(s, packet, wait, r, attempt, slot->waited_us);
    r->info.attempt = attempt; /* only now: a store into what is about to be copied would stall the copy */
    if (MF_LIKELY(!was_tried(r))) {
        s->stats.wait_us[wait_bucket(waited_us)]++;
        s->stats.wait_sum_us += waited_us;
    }
    r->stamp = (r->stamp & ~STATE_BITS) | TRIED | RECORD_ASSIGNED;
    MF_PREFETCH(cell_at(s, r->link.back)); /* for the time when it is done */
    s->stats.assigned++;
    s->stats.busy++;
}

/* A slot's last wait, as its executor said it. */
MF_INLINE struct mf_wait wait_of(uint32_t slot_number, const struct slot MF_FAR *slot)
{
    struct mf_wait wait = {mf_net32(slot_number), mf_net32(slot->generation), mf_net32(slot->sequence)};
    return wait;
}

/* Gives a task to a parked slot. */
static void assign_parked(struct mf_tasks MF_FAR *s, struct mf_out MF_FAR *out, uint64_t now_ns, uint32_t task,
                          uint32_t slot_number)
{
    struct slot MF_FAR *slot = slot_at(s, slot_number);
    struct mf_wait wait = wait_of(slot_number, slot);
    unpark(s, slot_number);
    assign(s, assign_packet(s, out, &slot->address), wait, now_ns, task, slot);
}

/* A task that was just accepted goes to a parked slot, or to the tail of its list. */
MF_INLINE void place(struct mf_tasks MF_FAR *s, struct mf_out MF_FAR *out, uint64_t now_ns, uint32_t task)
{
    uint32_t slot_number = parked_for(s, record_at(s, task)->info.resources);
    if (MF_LIKELY(slot_number == NONE))
        queue_push_tail(s, task);
    else
        assign_parked(s, out, now_ns, task, slot_number);
}

/* A task that its slot lost or gave back goes to a parked slot, or before all others of its list (T10). */
static void requeue(struct mf_tasks MF_FAR *s, struct mf_out MF_FAR *out, uint64_t now_ns, uint32_t task)
{
    uint32_t slot_number = parked_for(s, record_at(s, task)->info.resources);
    if (slot_number == NONE)
        queue_push_head(s, task);
    else
        assign_parked(s, out, now_ns, task, slot_number);
}

/* Takes the task from a slot that holds one. */
MF_INLINE uint32_t take_from_slot(struct mf_tasks MF_FAR *s, struct slot MF_FAR *slot)
{
    uint32_t task = slot->record;
    slot->record = NONE;
    slot->state = SLOT_FREE;
    s->stats.busy--;
    return task;
}

/* The slot's task is done. */
MF_INLINE void finish_task(struct mf_tasks MF_FAR *s, struct slot MF_FAR *slot)
{
    forget_task(s, take_from_slot(s, slot));
    s->stats.completed++;
}

#endif
