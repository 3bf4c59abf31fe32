/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The handler of RETRIEVE: ordinary waits, each of which reports the slot's last task done, and prefetches. */
#ifndef MIDFLIGHT_RETRIEVE_H
#define MIDFLIGHT_RETRIEVE_H

#include "slots.h"
#include "wishes.h"

/* 2^16 / sizeof(struct mf_assignment), rounded up: converts bytes to assignments by multiplication, because division is slow in BPF. */
#define ASSIGNMENTS_A_BYTE (65536u / sizeof(struct mf_assignment) + 1)
_Static_assert(MF_SLOTS_MAX * sizeof(struct mf_assignment) * ASSIGNMENTS_A_BYTE >> 16 == MF_SLOTS_MAX, "exact");

enum wait_state {
    WAIT_VOID,    /* the slot must register again */
    WAIT_SETTLED, /* nothing to do: it is parked, or was refused */
    WAIT_OPEN,    /* it still wants a task */
    WAIT_ASSIGNED /* it has a task */
};

/* A wait with a sequence above the slot's: its last task is done and it wants another. */
MF_INLINE enum wait_state wait_anew(struct mf_tasks *s, uint64_t now_ns, uint32_t i, uint32_t sequence,
                                    uint32_t resources)
{
    struct slot *slot = slot_at(s, i);
    slot->sequence = sequence;
    slot->spent = 0;
    if (MF_LIKELY(slot->state == SLOT_ASSIGNED)) {
        finish_task(s, now_ns, slot);
    } else if (slot->state == SLOT_WAITING) {
        if (slot->resources == resources)
            return WAIT_SETTLED; /* keeps its position in the parked list */
        unpark(s, i);
    }
    slot->resources = (uint8_t)resources;
    return WAIT_OPEN;
}

/* A wait with the slot's current sequence, a repeat. If the slot has a task, writes the same assignment to `a` (T2). That renews no lease,
 * because the repeat does not show that the first assignment arrived. If the slot was unparked because its executor was silent, the wait is
 * open again. */
MF_RARE enum wait_state wait_again(struct mf_tasks *s MF_IN_ARENA, uint64_t now_ns, const struct mf_wait *wait MF_IN_ARENA,
                                   struct slot *slot MF_IN_ARENA, struct mf_assignment *a MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(wait);
    MF_FROM_ARENA(slot);
    MF_FROM_ARENA(a);
    if (slot->state == SLOT_FREE && slot->spent) {
        count(s, MF_V_STALE_WAIT);
        return WAIT_VOID;
    }
    count(s, MF_V_REPEATED_WAIT);
    if (slot->state == SLOT_ASSIGNED) {
        const struct record *r = record_at(s, slot->record);
        if (MF_MUTANT(11) && mf_net32(wait->slot) > 8)
            slot->heard_ns = now_ns;
        put_assignment(s, a, wait, slot->record, r->stamp, r->info.attempt, slot->waited_us);
        return WAIT_ASSIGNED;
    }
    slot->heard_ns = now_ns;
    return slot->state == SLOT_FREE ? WAIT_OPEN : WAIT_SETTLED;
}

/* queue_find without inlining, for repeated waits. */
MF_RARE uint32_t queue_find_apart(const struct mf_tasks *s MF_IN_ARENA, uint32_t resources)
{
    MF_FROM_ARENA(s);
    return queue_find(s, resources);
}

/* assign() without inlining, for a task of a place that is in no list. */
MF_RARE int assign_apart(struct mf_tasks *s MF_IN_ARENA, struct mf_assignment *a MF_IN_ARENA,
                         const struct mf_wait *wait MF_IN_ARENA, uint64_t now_ns, uint32_t task)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(a);
    MF_FROM_ARENA(wait);
    assign(s, a, wait, now_ns, task, slot_at(s, mf_net32(wait->slot)));
    return 0;
}

/* One wait: writes the oldest runnable task of the highest level to `a`, or parks the slot. */
MF_INLINE enum wait_state take_wait(struct mf_tasks *s, uint64_t now_ns, const struct mf_datagram *in,
                                    const struct mf_wait *wait, uint64_t counter, uint32_t resources,
                                    struct mf_assignment *a, struct mf_out *out)
{
    uint32_t i = mf_net32(wait->slot), sequence = mf_net32(wait->sequence);
    mf_verdict named = name_slot(s, in, i, mf_net32(wait->generation), counter);
    if (MF_UNLIKELY(named != MF_V_OK)) {
        count(s, named);
        return named == MF_V_REPLAYED ? WAIT_SETTLED : WAIT_VOID;
    }
    out->is_genuine = 1;
    struct slot *slot = slot_at(s, i);
    int32_t ahead = mf_serial_distance(sequence, slot->sequence);
    if (MF_UNLIKELY(ahead < 0)) {
        count(s, MF_V_STALE_WAIT);
        return WAIT_SETTLED;
    }
    enum wait_state state;
    uint32_t list;
    if (MF_LIKELY(ahead > 0)) {
        list = queue_find(s, resources); /* early, because its task takes long to fetch from memory */
        slot->heard_ns = now_ns;
        state = wait_anew(s, now_ns, i, sequence, resources);
    } else {
        state = wait_again(s, now_ns, wait, slot, a);
        list = queue_find_apart(s, slot->resources);
    }
    if (MF_UNLIKELY(state != WAIT_OPEN))
        return state;
    uint32_t task = MF_LIKELY(s->stats.for_place == 0) ? NONE : take_from_place(s, i, list);
    if (MF_UNLIKELY(task != NONE)) {
        assign_apart(s, a, wait, now_ns, task);
        return WAIT_ASSIGNED;
    }
    if (MF_UNLIKELY(list == NO_LIST)) {
        park(s, i);
        return WAIT_SETTLED;
    }
    task = queue_head(s, list);
    assign(s, a, wait, now_ns, task, slot);
    queue_pop(s, list, task);
    return WAIT_ASSIGNED;
}

/* Whether the ASSIGN that answers a prefetch might have no room for another task. It is the only answer: waits that it does not list got
 * nothing. */
MF_INLINE int may_exceed(const struct mf_tasks *s, const struct mf_out *out, uint32_t given)
{
    return s->blocks.used != 0 && sizeof(struct mf_assign) + given * sizeof(struct mf_assignment) + out->packet[0].appended +
                                          ASSIGNMENT_MAX > MF_PACKET_MAX;
}

/* One prefetch: like an ordinary wait, but it takes no task that was assigned before and is never parked. WAIT_OPEN means that it got
 * nothing, perhaps because the ASSIGN is full. Of two repeats both have room: executors repeat no more in one packet. */
MF_INLINE enum wait_state take_wait_ahead(struct mf_tasks *s, struct call *call, const struct mf_wait *wait,
                                          struct mf_assignment *a, int is_full)
{
    uint32_t i = mf_net32(wait->slot), sequence = mf_net32(wait->sequence);
    mf_verdict named = name_slot(s, call->in, i, mf_net32(wait->generation), counter_of(call->in));
    if (MF_UNLIKELY(named != MF_V_OK)) {
        count(s, named);
        return named == MF_V_REPLAYED ? WAIT_SETTLED : WAIT_VOID;
    }
    call->out->is_genuine = 1;
    struct slot *slot = slot_at(s, i);
    int32_t ahead = mf_serial_distance(sequence, slot->sequence);
    if (MF_UNLIKELY(ahead < 0)) {
        count(s, MF_V_STALE_WAIT);
        return WAIT_SETTLED;
    }
    if (slot->state == SLOT_WAITING)
        unpark(s, i);
    if (MF_LIKELY(ahead > 0)) {
        slot->heard_ns = call->now_ns;
        wait_anew(s, call->now_ns, i, sequence, ((const struct mf_retrieve *)call->in->data)->resources);
        slot->state = SLOT_FREE;
    } else if (!is_full) {
        enum wait_state state = wait_again(s, call->now_ns, wait, slot, a);
        if (state != WAIT_OPEN)
            return state;
    }
    if (is_full)
        return WAIT_OPEN;
    uint32_t list = queue_find_apart(s, slot->resources);
    uint32_t task = s->stats.for_place == 0 ? NONE : take_from_place(s, i, list);
    if (task != NONE) {
        assign_apart(s, a, wait, call->now_ns, task);
        return WAIT_ASSIGNED;
    }
    if (list == NO_LIST)
        return WAIT_OPEN;
    task = queue_head(s, list);
    if (was_tried(record_at(s, task)) && !(MF_MUTANT(20) && i > 32)) /* planted bug: slots above the 32nd also take a task assigned
                                                                      * before */
        return WAIT_OPEN;
    assign(s, a, wait, call->now_ns, task, slot);
    queue_pop(s, list, task);
    return WAIT_ASSIGNED;
}

/* Distributes the assignments of the first datagram, written as if they had no arguments, over as many ASSIGNs as these need. */
MF_RARE int share_out(struct mf_tasks *s MF_IN_ARENA, const struct mf_datagram *in MF_IN_ARENA, struct mf_out *out MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    MF_FROM_ARENA(out);
    const struct mf_assignment *a = (const struct mf_assignment *)(out->packet[0].data + sizeof(struct mf_assign));
    uint32_t assignments = header_of(&out->packet[0])->count;
    out->count = 0;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < assignments && k < MF_SLOTS_MAX); k++, a++)
        MF_COPY(add_assignment(assign_packet(s, out, &in->from, appended_bytes(&a->task))), a);
    return 0;
}

/* Lists the waits of a prefetch that got nothing. `open`: bit k is for its wait k. */
MF_RARE mf_verdict put_no_op(const struct mf_tasks *s MF_IN_ARENA, const struct mf_datagram *in MF_IN_ARENA,
                             struct mf_out *out MF_IN_ARENA, uint32_t open)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    MF_FROM_ARENA(out);
    const struct mf_retrieve *packet = (const struct mf_retrieve *)in->data;
    const struct mf_wait *waits = (const struct mf_wait *)(packet + 1);
    struct mf_out_packet *answer = first_packet(out, &in->from, sizeof(struct mf_no_op));
    put_header(s, answer->data, MF_OP_NO_OP, 0, packet->header.sequence);
    for (; MF_LOOP(open != 0); open &= open - 1) {
        MF_COPY((struct mf_wait *)(answer->data + answer->length), &waits[mf_lowest_bit(open) % MF_SLOTS_MAX]);
        answer->length += sizeof(*waits);
        header_of(answer)->count++;
    }
    return MF_V_OK;
}

/* The position of a wait in its RETRIEVE. */
MF_INLINE uint32_t number_of(const struct mf_datagram *in, const struct mf_wait *wait)
{
    return (uint32_t)(wait - (const struct mf_wait *)(in->data + sizeof(struct mf_retrieve)));
}

/* Tells the sender of a RETRIEVE which of its slots must register again. */
MF_RARE mf_verdict put_voids(const struct mf_tasks *s MF_IN_ARENA, const struct mf_datagram *in MF_IN_ARENA,
                                  struct mf_out *out MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    MF_FROM_ARENA(out);
    const struct mf_wait *waits = (const struct mf_wait *)(in->data + sizeof(struct mf_retrieve));
    struct mf_out_packet *reset = 0;
    for (uint32_t voids = out->note; MF_LOOP(voids != 0); voids &= voids - 1)
        put_void(s, in, out, &reset, &waits[mf_lowest_bit(voids) % MF_SLOTS_MAX]);
    return MF_V_OK;
}

/* A prefetch: one answer, ASSIGN or NO_OP, and RESET for void waits. A separate function, so that ordinary waits do not pay for it. */
MF_RARE mf_verdict handle_retrieve_ahead(struct mf_tasks *s MF_IN_ARENA, uint64_t now_ns, const struct mf_datagram *in MF_IN_ARENA,
                                         struct mf_out *out MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    MF_FROM_ARENA(out);
    struct call call = {now_ns, in, out};
    const struct mf_retrieve *packet = (const struct mf_retrieve *)in->data;
    const struct mf_wait *waits = (const struct mf_wait *)(packet + 1);
    struct mf_assignment *first = (struct mf_assignment *)(out->packet[0].data + sizeof(struct mf_assign));
    uint32_t given = MF_ZERO, open = MF_ZERO;
    out->packet[0].appended = 0;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < packet->header.count && k < MF_SLOTS_MAX); k++) {
        enum wait_state state = take_wait_ahead(s, &call, &waits[k], &first[given], may_exceed(s, out, given));
        if (MF_LIKELY(state == WAIT_ASSIGNED)) {
            if (MF_UNLIKELY(s->blocks.used != 0))
                out->packet[0].appended += appended_bytes(&first[given].task);
            given++;
        } else if (state == WAIT_OPEN)
            open |= 1u << k % MF_SLOTS_MAX;
        else if (state == WAIT_VOID)
            out->note |= 1u << k % MF_SLOTS_MAX;
    }
    if (given != 0)
        put_header(s, first_packet(out, &in->from, sizeof(struct mf_assign) + given * sizeof(*first))->data, MF_OP_ASSIGN, given,
                   packet->header.sequence);
    else if (open != 0)
        put_no_op(s, in, out, open);
    return out->note ? put_voids(s, in, out) : MF_V_OK;
}

MF_FREQUENT_HANDLER mf_verdict handle_retrieve(struct mf_tasks *s, uint64_t now_ns, const struct mf_datagram *in,
                                                    struct mf_out *out)
{
    const struct mf_retrieve *packet = (const struct mf_retrieve *)in->data;
    mf_verdict verdict = check_shape(in, sizeof(*packet), sizeof(struct mf_wait), 1, MF_SLOTS_MAX);
    s->stats.packets[MF_OP_RETRIEVE]++;
    if (MF_UNLIKELY(verdict != MF_V_OK))
        return verdict;
    if (MF_UNLIKELY(packet->header.epoch != s->epoch))
        return put_reset_all(s, in, out);
    if (MF_UNLIKELY(packet->ahead))
        return handle_retrieve_ahead(s, now_ns, in, out);
    const struct mf_wait *wait = (const struct mf_wait *)(packet + 1), *end = wait + packet->header.count;
    /* All slots belong to the sender, so their tasks share an ASSIGN. Its header is written last, if there are any. */
    struct mf_assignment *first = (struct mf_assignment *)(out->packet[0].data + sizeof(struct mf_assign)), *next = first;
    uint32_t resources = packet->resources;
    uint64_t counter = mf_net64(packet->counter);
    do {
        s = MF_OPAQUE(s);
        enum wait_state state = take_wait(s, now_ns, in, wait, counter, resources, next, out);
        if (MF_LIKELY(state == WAIT_ASSIGNED))
            next++;
        else if (MF_UNLIKELY(state == WAIT_VOID))
            out->note |= 1u << number_of(in, wait);
    } while (MF_UNLIKELY(MF_LOOP(++wait < end)));
    uint32_t bytes = (uint32_t)((uint8_t *)next - (uint8_t *)first);
    if (MF_LIKELY(bytes != 0)) {
        put_header(s, first_packet(out, &in->from, sizeof(struct mf_assign) + bytes)->data, MF_OP_ASSIGN,
                   bytes * ASSIGNMENTS_A_BYTE >> 16, 0);
        if (MF_UNLIKELY(s->blocks.used != 0))
            share_out(s, in, out);
    }
    if (MF_UNLIKELY(out->note))
        return put_voids(s, in, out);
    return MF_V_OK;
}

/* Whether a RETRIEVE of several waits may need two answers, an ASSIGN and a RESET. */
static int retrieve_owes_both(const struct mf_tasks *s, const struct mf_datagram *in)
{
    const struct mf_retrieve *packet = (const struct mf_retrieve *)in->data;
    const struct mf_wait *waits = (const struct mf_wait *)(packet + 1);
    uint32_t records = packet->header.count, maybe_void = 0;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records && k < MF_SLOTS_MAX); k++) {
        uint32_t i = mf_net32(waits[k].slot);
        const struct slot *slot = slot_at((struct mf_tasks *)s, i <= s->slots.fresh ? i : NONE);
        int foreign = slot->state == SLOT_VACANT || slot->generation != mf_net32(waits[k].generation) ||
                      !mf_address_equal(&slot->address, &in->from);
        maybe_void |= (uint32_t)(foreign || (slot->state == SLOT_FREE && slot->spent));
    }
    return maybe_void != 0;
}

/* Whether a wait of this RETRIEVE already has a task, which may be its answer again. */
static int may_repeat_assignments(const struct mf_tasks *s, const struct mf_datagram *in)
{
    const struct mf_retrieve *packet = (const struct mf_retrieve *)in->data;
    const struct mf_wait *waits = (const struct mf_wait *)(packet + 1);
    uint32_t records = packet->header.count;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records && k < MF_SLOTS_MAX); k++) {
        uint32_t i = mf_net32(waits[k].slot);
        const struct slot *slot = slot_at((struct mf_tasks *)s, i <= s->slots.fresh ? i : NONE);
        if (slot->state == SLOT_ASSIGNED && slot->sequence == mf_net32(waits[k].sequence))
            return 1;
    }
    return 0;
}

/* If the ASSIGN may not fit into the frame, XDP must not take the RETRIEVE: that would use up its counter, and TC would find it REPLAYED.
 * With an empty queue, the usual case in a cluster that keeps up, there is no answer. */
static int retrieve_owes_more(const struct mf_tasks *s, const struct mf_datagram *in, uint32_t room)
{
    uint32_t records = ((const struct mf_header *)in->data)->count;
    if (in->length != sizeof(struct mf_retrieve) + records * sizeof(struct mf_wait))
        return 0;
    if (records > 1 && retrieve_owes_both(s, in))
        return 1;
    uint32_t used = s->blocks.used * BLOCK_BYTES, most = records * MF_APPENDED_MAX;
    if (sizeof(struct mf_assign) + records * sizeof(struct mf_assignment) + (used < most ? used : most) <=
        (room < MF_PACKET_MAX ? room : MF_PACKET_MAX))
        return 0;
    return s->levels_used != 0 || s->stats.for_place != 0 || may_repeat_assignments(s, in);
}

#endif
