/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Executors' slots: how they register, move, return tasks and leave, and which packets may act for one (T13, T14). */
#ifndef MIDFLIGHT_SLOTS_H
#define MIDFLIGHT_SLOTS_H

#include "assign.h"
#include "cookie.h"
#include "sources.h"

/* A new generation; never 0. Known generations do not reveal it. */
MF_INLINE uint32_t draw_generation(struct mf_tasks *s)
{
    uint32_t drawn = (uint32_t)siphash(s->generation_key, ++s->generations, 0, 0, 0);
    return drawn ? drawn : 1;
}

/* Removes the wait or task of a registered slot. Returns the task, which is then in no list, or NONE. */
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

/* Whether a task goes before another one: T3, T4. */
MF_INLINE int goes_before(const struct record *a, const struct record *b)
{
    uint32_t level_a = level_of(&a->info), level_b = level_of(&b->info);
    return level_a == level_b ? key_of(a) < key_of(b) : level_a < level_b;
}

/* Inserts a task that a slot returned into the ordered list for requeue_all; `first` is its first task, or NONE. Returns the new first one.
 * It is a list, not an array, because the kernel's stack is small. */
static uint32_t give_back(struct mf_tasks *s, uint32_t first, uint32_t task)
{
    if (task == NONE)
        return first;
    uint32_t before = NONE, after = first;
    while (MF_LOOP(after != NONE && goes_before(record_at(s, after), record_at(s, task)))) {
        before = after;
        after = record_at(s, after)->next;
    }
    record_at(s, task)->next = after;
    if (before == NONE)
        return task;
    record_at(s, before)->next = task;
    return first;
}

/* Assigns the tasks that a packet returned to parked slots, first in order first, and requeues the rest. Called after the packet's last
 * record, so that no task goes to a slot which leaves in the same packet. */
static void requeue_all(struct mf_tasks *s, struct call *call, uint32_t first)
{
    uint32_t left_over = NONE, next;
    for (uint32_t task = first; MF_LOOP(task != NONE); task = next) {
        next = record_at(s, task)->next;
        if (!is_left_over(s, call->out, call->now_ns, task))
            continue;
        record_at(s, task)->next = left_over;
        left_over = task;
    }
    /* Last one first, because each goes to the head. */
    for (uint32_t task = left_over; MF_LOOP(task != NONE); task = next) {
        next = record_at(s, task)->next;
        queue_again(s, task);
    }
}

/* The place with this name, added if new; NONE if there is no room. */
static uint32_t find_or_add_place(struct mf_tasks *s, uint32_t name)
{
    uint32_t i = find_place(s, name);
    if (i == NONE)
        i = take_place(s);
    else
        return i;
    if (i == NONE)
        return NONE;
    place_at(s, i)->name = name; /* the rest is still empty */
    place_index_insert(s, place_bucket(s, name), i);
    s->stats.places++;
    return i;
}

/* Enters a slot at the places of its REGISTER, each once. The slot has none yet and is not parked. */
static void join_places(struct mf_tasks *s, uint32_t slot, const struct mf_register *packet)
{
    for (uint32_t k = MF_ZERO; MF_LOOP(k < MF_SLOT_PLACES); k++) {
        uint32_t name = packet->places[k % MF_SLOT_PLACES];
        if (name == 0 || (k != 0 && name == packet->places[0]))
            continue;
        uint32_t place = find_or_add_place(s, name);
        if (place == NONE) {
            count(s, MF_V_PLACES_FULL);
            continue;
        }
        place_at(s, place)->slots++;
        seat_of(s, slot, k)->place = place;
        slot_at(s, slot)->is_placed = 1;
    }
}

/* Removes a slot that is not parked from its places. */
static void leave_places(struct mf_tasks *s, uint32_t slot)
{
    if (!slot_at(s, slot)->is_placed)
        return;
    slot_at(s, slot)->is_placed = 0;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < MF_SLOT_PLACES); k++) {
        uint32_t place = seat_of(s, slot, k)->place;
        if (place == NONE)
            continue;
        seat_of(s, slot, k)->place = NONE;
        place_at(s, place)->slots--;
        release_place(s, place);
    }
}

static void vacate(struct mf_tasks *s, uint32_t i)
{
    struct slot_owner *owner = slot_owner_at(s, i);
    leave_places(s, i);
    slot_at(s, i)->state = SLOT_VACANT;
    source_at(s, owner->source)->slots -= !(MF_MUTANT(9) && i > 32 && s->slots.capacity < 1024);
    release_source(s, owner->source);
    slot_index_remove(s, i);
    give_slot(s, i);
    s->stats.slots--;
}

/* Allocates a slot for an executor's local number; NONE if none is free, or its source has its share (T14). Slots for prefetching must
 * leave as many free as their source holds. */
static uint32_t add_slot(struct mf_tasks *s, const struct mf_address *from, const struct mf_register *packet, uint32_t local)
{
    uint32_t known = find_source(s, from), held = known == NONE ? 0 : source_at(s, known)->slots;
    uint32_t free = s->slots.capacity - s->slots.used;
    if (MF_MUTANT(19) && s->slots.capacity > 16 && held > 8)
        held -= 8; /* planted bug: does not count eight of a source's slots */
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

/* Starts a new generation. Returns the task that the slot returned, or NONE. */
static uint32_t renew_slot(struct mf_tasks *s, struct call *call, uint32_t i, uint32_t registration)
{
    const struct mf_register *packet = (const struct mf_register *)call->in->data;
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
    slot->resources = packet->resources;
    leave_places(s, i);
    join_places(s, i, packet);
    return task;
}

/* Registers one slot. Sets `*number` to its number, and `*task` to a task that it returned. A repeat of the current registration changes
 * nothing; an older one is refused. */
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
        *task = renew_slot(s, call, i, registration);
    *number = i;
    return MF_V_OK;
}

MF_INLINE int is_registered(struct mf_tasks *s, uint32_t i, uint32_t generation)
{
    if (MF_UNLIKELY(i > s->slots.fresh))
        return 0;
    const struct slot *slot = slot_at(s, i); /* number 0 is always vacant */
    return MF_LIKELY(slot->state != SLOT_VACANT && slot->generation == generation);
}

/* Checks whether a record of a packet may act for a slot: OK, or the drop reason. A packet that is not later than the last one that named
 * the slot is a copy, or was overtaken. */
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

#endif
