/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Assigns tasks to slots. Between any two calls T6 holds: no parked slot could run a queued task. */
#ifndef MIDFLIGHT_ASSIGN_H
#define MIDFLIGHT_ASSIGN_H

#include "parking.h"
#include "queue.h"
#include "reply.h"

/* The histogram's bucket: 0 below 1 us, b for [2^(b-1), 2^b) us. */
MF_INLINE uint32_t wait_bucket(const struct mf_tasks *s, uint64_t us)
{
#ifdef __bpf__
    if (MF_LIKELY(us < 256))
        return *MF_AT(s, bits, us);
    if (MF_LIKELY(us < 65536))
        return 8 + *MF_AT(s, bits, us >> 8);
#endif
    uint32_t bucket = mf_highest_bit(us << 1 | 1);
    (void)s;
    return bucket < MF_WAIT_BUCKETS ? bucket : MF_WAIT_BUCKETS - 1;
}

/* Converts units of 8 ns to microseconds. Compilers divide by a constant through the high half of a product, for which BPF has no
 * instruction. So times below 2^32 units (34 seconds) are divided by hand: 125 = 2^35 / 0x10624dd3. */
MF_INLINE uint64_t in_us(uint64_t units)
{
#ifdef __bpf__
    if (MF_LIKELY(units >> 32 == 0))
        return units * 0x10624dd3 >> 35;
#endif
    return units / 125;
}

/* Microseconds from a task's acceptance to now; `told_us`: the same, capped at the 32 bits of an ASSIGN. */
MF_INLINE uint64_t waited(uint64_t stamp, uint64_t now_ns, uint32_t *told_us)
{
    uint64_t now = now_ns >> KEY_SHIFT, key = stamp >> STAMP_SHIFT;
#ifdef __bpf__
    if (MF_LIKELY((now - key) >> 32 == 0)) { /* fewer paths for the verifier than in_us */
        *told_us = (uint32_t)((now - key) * 0x10624dd3 >> 35);
        return *told_us;
    }
#endif
    uint64_t us = now > key ? (now - key) / 125 : 0;
    *told_us = us >> 32 ? ~0u : (uint32_t)us;
    return us;
}

/* Assigns a task to a slot in answer to its wait. The slot is in no list; the task is in none, or the caller removes it. */
MF_INLINE void assign(struct mf_tasks *s, struct mf_assignment *a, const struct mf_wait *wait, uint64_t now_ns, uint32_t task,
                      struct slot *slot)
{
    struct record *r = record_at(s, task);
    uint32_t told_us, attempt = r->info.attempt + 1u; /* stays at 255 */
    uint64_t stamp = r->stamp, waited_us = waited(stamp, now_ns, &told_us);
    attempt -= attempt >> 8;
    slot->assigned_ns = now_ns;
    slot->waited_us = told_us;
    slot->state = SLOT_ASSIGNED;
    slot->record = task;
    put_assignment(s, a, wait, task, stamp, (uint8_t)attempt, told_us);
    r->info.attempt = (uint8_t)attempt; /* after the copy in put_assignment, which an immediately preceding store would stall */
    r->stamp = (stamp & ~STATE_BITS) | TRIED | RECORD_ASSIGNED;
    r->slot = wait->slot; /* before the caller removes the task from its list, since the next task there needs no `prev` */
    if (MF_LIKELY(!(stamp & TRIED))) {
        ++*MF_AT(s, stats.wait_us, wait_bucket(s, waited_us));
        s->stats.wait_sum_us += waited_us;
    }
    MF_PREFETCH(cell_at(s, r->link.back)); /* needed when the task is done */
    s->stats.assigned++;
}

/* A slot's last wait, as its executor sent it. */
MF_INLINE struct mf_wait wait_of(uint32_t slot_number, const struct slot *slot)
{
    struct mf_wait wait = {mf_net32(slot_number), mf_net32(slot->generation), mf_net32(slot->sequence)};
    return wait;
}

MF_RARE int assign_parked(struct mf_tasks *s MF_IN_ARENA, struct mf_out *out MF_IN_ARENA, uint64_t now_ns, uint32_t task,
                          uint32_t slot_number)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(out);
    struct slot *slot = slot_at(s, slot_number);
    struct mf_wait wait = wait_of(slot_number, slot);
    unpark(s, slot_number);
    slot->heard_ns = now_ns; /* the lease begins now */
    uint32_t appended = appended_bytes(&record_at(s, task)->info);
    assign(s, add_assignment(assign_packet(s, out, &slot->address, appended)), &wait, now_ns, task, slot);
    return 0;
}

/* Assigns a newly accepted task to a parked slot, or appends it to its list. */
MF_INLINE void assign_or_queue(struct mf_tasks *s, struct mf_out *out, uint64_t now_ns, uint32_t task, uint64_t stamp,
                               uint32_t list)
{
    uint32_t slot_number = parked_for(s, list % MASKS);
    if (MF_LIKELY(slot_number == NONE))
        queue_push_tail(s, task, stamp, list);
    else
        assign_parked(s, out, now_ns, task, slot_number);
}

/* Assigns a task that its slot lost or returned to a parked slot, or drops it if its client no longer wants it. Returns 1 if neither
 * applies and the task must be requeued. */
static int is_left_over(struct mf_tasks *s, struct mf_out *out, uint64_t now_ns, uint32_t task)
{
    const struct record *r = record_at(s, task);
    /* Planted bug: requeues it in a long queue. */
    if ((state_of(r) == RECORD_STOPPING && !(MF_MUTANT(46) && s->queue - s->room > 16)) || is_unwanted(s, r)) {
        forget_task(s, task);
        s->stats.cancelled++;
        return 0;
    }
    uint32_t slot_number = parked_for(s, r->info.resources);
    if (slot_number == NONE)
        return 1;
    assign_parked(s, out, now_ns, task, slot_number);
    return 0;
}

/* Requeues a task before all others of its list (T10). */
static void queue_again(struct mf_tasks *s, uint32_t task)
{
    struct record *r = record_at(s, task);
    if (MF_MUTANT(2) && s->stats.queued[level_of(&r->info)] > 16) {
        set_state(r, RECORD_QUEUED); /* planted bug: after the others of a long list */
        queue_push_tail(s, task, r->stamp, list_for(&r->info));
        return;
    }
    queue_push_head(s, task);
}

/* Removes the task from a slot that has one. */
MF_INLINE uint32_t take_from_slot(struct slot *slot)
{
    slot->state = SLOT_FREE;
    return slot->record;
}

/* Counts a run time. Not inlined in the kernel: its branches inside the loop over waits would quadruple the verifier's states and exceed
 * its limit. */
MF_RARE int count_run(struct mf_tasks *s MF_IN_ARENA, uint64_t ran_ns)
{
    MF_FROM_ARENA(s);
    uint64_t run_us = in_us(ran_ns >> KEY_SHIFT);
    ++*MF_AT(s, stats.run_us, wait_bucket(s, run_us));
    s->stats.run_sum_us += run_us;
    return 0;
}

MF_INLINE void finish_task(struct mf_tasks *s, uint64_t now_ns, const struct slot *slot)
{
    count_run(s, now_ns - slot->assigned_ns); /* the time never decreases */
    forget_task(s, slot->record);
    s->stats.completed++;
}

#endif
