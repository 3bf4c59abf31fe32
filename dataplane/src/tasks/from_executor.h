/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Handlers of REGISTER, RETRIEVE, KEEPALIVE and RELEASE. */
#ifndef MIDFLIGHT_FROM_EXECUTOR_H
#define MIDFLIGHT_FROM_EXECUTOR_H

#include "assign.h"
#include "cookie.h"
#include "sources.h"

/* A new generation; never 0. Whoever knows other generations cannot compute it. */
MF_INLINE uint32_t draw_generation(struct mf_tasks *s)
{
    uint32_t drawn = (uint32_t)siphash(s->generation_key, ++s->generations, 0, 0, 0);
    return drawn ? drawn : 1;
}

/* Takes its wait or its task from a registered slot. Returns the task, which is then in no list, or NONE. */
static uint32_t clear_slot(struct mf_tasks *s, uint32_t i)
{
    struct slot *slot = slot_at(s, i);
    if (slot->state == SLOT_WAITING)
        unpark(s, i);
    if (slot->state != SLOT_ASSIGNED)
        return NONE;
    s->stats.returned++;
    return take_from_slot(slot);
}

/* Appends a task that a slot gave back, if any, to the list that requeue_all works off. A list and not an array, because the
 * stack is small in the kernel. */
MF_INLINE void give_back(struct mf_tasks *s, struct list *given_back, uint32_t task)
{
    if (task == NONE)
        return;
    record_at(s, task)->next = NONE;
    if (given_back->tail == NONE)
        given_back->head = task;
    else
        record_at(s, given_back->tail)->next = task;
    given_back->tail = task;
}

/* Queues again the tasks that a packet gave back. Called after its last record, so that none goes to a slot which leaves in the
 * same packet. */
static void requeue_all(struct mf_tasks *s, struct call *call, uint32_t first)
{
    for (uint32_t task = first, next; MF_LOOP(task != NONE); task = next) {
        next = record_at(s, task)->next;
        requeue(s, call->out, call->now_ns, task);
    }
}

/* Frees a slot whose state is FREE. */
static void vacate(struct mf_tasks *s, uint32_t i)
{
    struct slot_owner *owner = slot_owner_at(s, i);
    slot_at(s, i)->state = SLOT_VACANT;
    source_at(s, owner->source)->slots -= !(MF_MUTANT(9) && i > 32 && s->slots.capacity < 1024);
    release_source(s, owner->source);
    slot_index_remove(s, i);
    give_slot(s, i);
    s->stats.slots--;
}

/* Allocates a slot for an executor's local number; NONE if there is none, or its source has its share (T14). Slots for asking ahead
 * take only what leaves as many free as their source holds. */
static uint32_t add_slot(struct mf_tasks *s, const struct mf_address *from, const struct mf_register *packet, uint32_t local)
{
    uint32_t known = find_source(s, from), held = known == NONE ? 0 : source_at(s, known)->slots;
    uint32_t free = s->slots.capacity - s->slots.used;
    if (MF_MUTANT(19) && s->slots.capacity > 16 && held > 8)
        held -= 8; /* planted bug: of a source's slots eight are not counted */
    if (!is_within_share(held, free) || (packet->kind == MF_KIND_AHEAD && held >= free))
        return NONE;
    uint32_t i = take_slot(s);
    struct slot_owner *owner = slot_owner_at(s, i);
    owner->executor = packet->executor;
    owner->local = local;
    owner->source = find_or_add_source(s, from);
    source_at(s, owner->source)->slots++;
    slot_at(s, i)->generation = 0;
    slot_at(s, i)->state = SLOT_FREE;
    MF_COPY(&slot_at(s, i)->address, from);
    slot_index_insert(s, slot_bucket(s, packet->executor, local), i);
    s->stats.slots++;
    return i;
}

/* Changes a slot's address, and the source that it counts for. */
static void move_slot(struct mf_tasks *s, uint32_t i, const struct mf_address *to)
{
    struct slot_owner *owner = slot_owner_at(s, i);
    source_at(s, owner->source)->slots--;
    release_source(s, owner->source);
    owner->source = find_or_add_source(s, to);
    source_at(s, owner->source)->slots++;
    MF_COPY(&slot_at(s, i)->address, to);
}

/* Starts a new generation. Returns the task that the slot gave back, or NONE. */
static uint32_t renew_slot(struct mf_tasks *s, struct call *call, uint32_t i, uint32_t registration, uint8_t resources)
{
    struct slot *slot = slot_at(s, i);
    slot_owner_at(s, i)->registration = registration;
    slot->heard_ns = call->now_ns;
    slot->generation = draw_generation(s);
    slot->sequence = 0;
    slot->counter = 0;
    slot->spent = 1;
    if (!mf_address_equal(&slot->address, &call->in->from))
        move_slot(s, i, &call->in->from);
    uint32_t task = clear_slot(s, i);
    slot->resources = resources;
    return task;
}

/* Registers one slot. Sets `*number` to its number, and `*task` to a task that it gave back. A repeat of the present registration
 * changes nothing; an older one is refused. */
static mf_verdict register_slot(struct mf_tasks *s, struct call *call, uint32_t local, uint32_t *number, uint32_t *task)
{
    const struct mf_register *packet = (const struct mf_register *)call->in->data;
    uint32_t registration = mf_net32(packet->header.sequence), i = find_slot(s, packet->executor, local);
    int32_t later = i == NONE ? 1 : mf_serial_distance(registration, slot_owner_at(s, i)->registration);
    if (later < 0)
        return MF_V_STALE_REGISTER;
    if (i == NONE)
        i = add_slot(s, &call->in->from, packet, local);
    if (i == NONE)
        return s->slots.used == s->slots.capacity ? MF_V_SLOTS_FULL : MF_V_SLOTS_SHARE;
    if (later > 0)
        *task = renew_slot(s, call, i, registration, packet->resources);
    *number = i;
    return MF_V_OK;
}

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
    struct list given_back = {NONE, NONE};
    uint32_t k = MF_ZERO, first = mf_net32(packet->first);
    put_header(s, answer->data, MF_OP_REGISTERED, 0, packet->header.sequence);
    for (; MF_LOOP(k < records_in(call) && k < MF_REGISTER_MAX); k++) {
        uint32_t i = NONE, task = NONE;
        refused = register_slot(s, call, first + k, &i, &task);
        if (refused != MF_V_OK)
            break;
        give_back(s, &given_back, task);
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
    requeue_all(s, call, given_back.head);
    return MF_V_OK;
}

/* Whether this is the number and generation of a registered slot. */
MF_INLINE int is_registered(struct mf_tasks *s, uint32_t i, uint32_t generation)
{
    if (MF_UNLIKELY(i > s->slots.fresh))
        return 0;
    const struct slot *slot = slot_at(s, i); /* number 0 is always vacant */
    return MF_LIKELY(slot->state != SLOT_VACANT && slot->generation == generation);
}

/* Checks whether a record of a packet may act for a slot: OK, or what is wrong. A packet that is not later than the last one that
 * named the slot is a copy, or was overtaken. */
MF_INLINE mf_verdict name_slot(struct mf_tasks *s, const struct mf_datagram *in, uint32_t i, uint32_t generation,
                                    uint64_t counter)
{
    if (MF_UNLIKELY(!is_registered(s, i, generation)))
        return MF_V_FOREIGN_SLOT;
    struct slot *slot = slot_at(s, i);
    if (MF_UNLIKELY(!mf_address_equal(&slot->address, &in->from)))
        return MF_V_SPOOFED_SLOT;
    if (MF_UNLIKELY(counter <= slot->counter) && !(MF_MUTANT(13) && i > 32))
        return MF_V_REPLAYED;
    slot->counter = counter;
    return MF_V_OK;
}

/* 2^16 / sizeof(struct mf_assignment), rounded up: turns bytes into a number of assignments by multiplication, because division
 * is slow in BPF. */
#define ASSIGNMENTS_A_BYTE (65536u / sizeof(struct mf_assignment) + 1)
_Static_assert(MF_SLOTS_MAX * sizeof(struct mf_assignment) * ASSIGNMENTS_A_BYTE >> 16 == MF_SLOTS_MAX, "exact");

enum wait_state {
    WAIT_VOID,    /* the slot must register anew */
    WAIT_SETTLED, /* nothing to do: it is parked, or was refused */
    WAIT_OPEN,    /* it still wants a task */
    WAIT_ASSIGNED /* it has got a task */
};

/* A wait with a sequence above the slot's: its last task is done, and it wants another. */
MF_INLINE enum wait_state wait_anew(struct mf_tasks *s, uint32_t i, uint32_t sequence, uint32_t resources)
{
    struct slot *slot = slot_at(s, i);
    slot->sequence = sequence;
    slot->spent = 0;
    if (MF_LIKELY(slot->state == SLOT_ASSIGNED)) {
        finish_task(s, slot->record);
    } else if (slot->state == SLOT_WAITING) {
        if (slot->resources == resources)
            return WAIT_SETTLED; /* stays where it is in the list of parked slots */
        unpark(s, i);
    }
    slot->resources = (uint8_t)resources;
    return WAIT_OPEN;
}

/* A wait with the slot's present sequence: a repeat. If the slot has a task, the same assignment is written to `a` (T2). That
 * renews no lease, because the repeat does not show that the first assignment has arrived. If the wait was unparked because the
 * executor was silent, it is open again. */
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
        if (MF_MUTANT(11) && mf_net32(wait->slot) > 32)
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

/* One wait: the slot gets the oldest task of the highest level that it may run, written to `a`, or is parked. */
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
        state = wait_anew(s, i, sequence, resources);
    } else {
        state = wait_again(s, now_ns, wait, slot, a);
        list = queue_find_apart(s, slot->resources);
    }
    if (MF_UNLIKELY(state != WAIT_OPEN))
        return state;
    if (MF_UNLIKELY(list == NO_LIST)) {
        park(s, i);
        return WAIT_SETTLED;
    }
    uint32_t task = queue_head(s, list);
    assign(s, a, wait, now_ns, task, slot);
    queue_pop(s, list, task);
    return WAIT_ASSIGNED;
}

/* One wait ahead: the slot gets what an ordinary wait would get, unless that was assigned before, written to `a`. It is never
 * parked: WAIT_OPEN says that it got nothing. */
MF_INLINE enum wait_state take_wait_ahead(struct mf_tasks *s, struct call *call, const struct mf_wait *wait,
                                          struct mf_assignment *a)
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
        wait_anew(s, i, sequence, ((const struct mf_retrieve *)call->in->data)->resources);
        slot->state = SLOT_FREE;
    } else {
        enum wait_state state = wait_again(s, call->now_ns, wait, slot, a);
        if (state != WAIT_OPEN)
            return state;
    }
    uint32_t list = queue_find_apart(s, slot->resources);
    if (list == NO_LIST)
        return WAIT_OPEN;
    uint32_t task = queue_head(s, list);
    if (was_tried(record_at(s, task)) && !(MF_MUTANT(20) && i > 32)) /* planted bug: by slots behind the 32nd also what was tried */
        return WAIT_OPEN;
    assign(s, a, wait, call->now_ns, task, slot);
    queue_pop(s, list, task);
    return WAIT_ASSIGNED;
}

/* Says which waits of a RETRIEVE of waits ahead got nothing. `open`: bit k is about its wait k. */
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

/* The number of a wait in its RETRIEVE. */
MF_INLINE uint32_t number_of(const struct mf_datagram *in, const struct mf_wait *wait)
{
    return (uint32_t)(wait - (const struct mf_wait *)(in->data + sizeof(struct mf_retrieve)));
}

/* Tells the sender of a RETRIEVE which of its slots must register anew. */
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

/* A RETRIEVE of waits ahead: one answer, ASSIGN or NO_OP, and RESET for void waits. A function of its own, so that ordinary waits
 * do not pay for it. */
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
    for (uint32_t k = MF_ZERO; MF_LOOP(k < packet->header.count && k < MF_SLOTS_MAX); k++) {
        enum wait_state state = take_wait_ahead(s, &call, &waits[k], &first[given]);
        if (MF_LIKELY(state == WAIT_ASSIGNED))
            given++;
        else if (state == WAIT_OPEN)
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
    /* All slots belong to the sender, so their tasks share one ASSIGN. Its header is written at the end, if there are any. */
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
    if (MF_LIKELY(bytes != 0))
        put_header(s, first_packet(out, &in->from, sizeof(struct mf_assign) + bytes)->data, MF_OP_ASSIGN,
                   bytes * ASSIGNMENTS_A_BYTE >> 16, 0);
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

/* Whether a wait of this RETRIEVE already has a task, so that the same task may be its answer again. */
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

/* If the ASSIGN may not fit into the frame, the RETRIEVE must not be taken there: its counter would be used up, and it would be
 * REPLAYED when it is brought again. Where nothing is queued it owes no answer, as most often in a cluster that keeps up. */
static int retrieve_owes_more(const struct mf_tasks *s, const struct mf_datagram *in, uint32_t room)
{
    uint32_t records = ((const struct mf_header *)in->data)->count;
    if (in->length != sizeof(struct mf_retrieve) + records * sizeof(struct mf_wait))
        return 0;
    if (records > 1 && retrieve_owes_both(s, in))
        return 1;
    if (sizeof(struct mf_assign) + records * sizeof(struct mf_assignment) <= room)
        return 0;
    return s->levels_used != 0 || may_repeat_assignments(s, in);
}

/* Renews the lease of a slot whose task still runs, if the task was the answer to this wait. Returns the verdict of name_slot. */
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

/* A KEEPALIVE with epoch 0 asks whether a switch lives here. The answer is a RESET; its sequence is 1 if the sender named one of
 * its slots, which tells it that the switch still knows it. */
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
    }
    return MF_V_OK;
}

/* A task whose attempt has not begun: the next one has the same number. */
MF_INLINE void undo_attempt(struct mf_tasks *s, uint32_t task)
{
    uint8_t *attempt = &record_at(s, task)->info.attempt;
    *attempt -= *attempt < 255;
}

/* One slot leaves, or gives back what it was given. Returns whether that was done; sets `*task` to a task that it gave back. */
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
        finish_task(s, take_from_slot(slot));
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
    struct list given_back = {NONE, NONE};
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
        give_back(s, &given_back, task);
    }
    requeue_all(s, call, given_back.head);
    return MF_V_OK;
}

#endif
