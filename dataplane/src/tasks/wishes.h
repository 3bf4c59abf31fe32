/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Placement preferences: tasks that wait for a slot at their preferred place, until their patience runs out (T19). Such a task is in a list
 * of its place and level, in the order of acceptance, and in the list of its patience class. A class is a power of two of milliseconds, so
 * a list is in the order of its deadlines and only heads need a check. While no task waits for a place, nothing here is called.
 */
#ifndef MIDFLIGHT_WISHES_H
#define MIDFLIGHT_WISHES_H

#include "assign.h"

/* The preference of a SUBMIT's tasks in one number: a place, and in the low bits a patience class, 0 to PATIENCES. Class c waits 2^(c-1)
 * ms. */
#define ANYWHERE 0u
#define PATIENCE_BITS 5

/* The smallest class that lasts this many milliseconds. */
MF_INLINE uint32_t patience_class(uint32_t ms)
{
    if (ms >= MF_PATIENCE_MAX)
        return PATIENCES;
    return ms <= 1 ? ms : 2 + mf_highest_bit(ms - 1);
}

/* The effective preference: ANYWHERE if the place has no slot. */
MF_RARE uint32_t wanted_by(struct mf_tasks *s MF_IN_ARENA, const struct mf_preference *preference MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(preference);
    uint32_t place = find_place(s, preference->place);
    if (place == NONE || place_at(s, place)->slots == 0)
        return ANYWHERE;
    return place << PATIENCE_BITS | patience_class(mf_net32(preference->patience_ms));
}

/* The slot parked at this place for a task with this mask, or NONE: the one with the fewest resources that suffice; among equals, the one
 * parked longest. */
MF_RARE uint32_t best_parked_at(struct mf_tasks *s MF_IN_ARENA, uint32_t place, uint32_t mask)
{
    MF_FROM_ARENA(s);
    struct parking *parked = &place_at(s, place)->parked;
    for (uint32_t resources = MF_ZERO; MF_LOOP(resources < SIZES); resources++) {
        uint32_t found = NONE;
        for (uint32_t word = MF_ZERO; MF_LOOP(word < MASK_WORDS); word++) {
            uint64_t masks = candidates(s, parked, mask, resources, word);
            for (; MF_LOOP(masks); masks &= masks - 1) {
                uint32_t i = parked->lists[word * 64 + mf_lowest_bit(masks)].head / MF_SLOT_PLACES;
                if (found == NONE || slot_at(s, i)->parked_key < slot_at(s, found)->parked_key)
                    found = i;
            }
        }
        if (found != NONE)
            return found;
    }
    return NONE;
}

MF_INLINE void wish(struct mf_tasks *s, uint32_t task, uint32_t number, uint32_t patience)
{
    struct record *r = record_at(s, task);
    struct place *place = place_at(s, number);
    struct wish *own = wish_at(s, task);
    uint32_t level = level_of(&r->info);
    struct list *waiting = &place->waiting[level], *same = MF_AT(s, patience, (patience - 1) % PATIENCES);
    r->next = NONE;
    r->prev = waiting->tail;
    if (waiting->tail != NONE)
        record_at(s, waiting->tail)->next = task;
    else
        waiting->head = task;
    waiting->tail = task;
    own->place = number;
    own->patience = patience;
    own->next = NONE;
    own->prev = same->tail;
    if (same->tail != NONE)
        wish_at(s, same->tail)->next = task;
    else
        same->head = task;
    same->tail = task;
    place->levels |= 1u << level;
    place->tasks++;
    ++*MF_AT(s, stats.queued, level);
    s->stats.for_place++;
}

/* Removes a task from both lists; its record stays. */
MF_RARE int wish_no_more(struct mf_tasks *s MF_IN_ARENA, uint32_t task)
{
    MF_FROM_ARENA(s);
    const struct record *r = record_at(s, task);
    struct wish *own = wish_at(s, task);
    uint32_t level = level_of(&r->info), number = own->place;
    struct place *place = place_at(s, number);
    struct list *waiting = &place->waiting[level], *same = MF_AT(s, patience, (own->patience - 1) % PATIENCES);
    if (r->next != NONE)
        record_at(s, r->next)->prev = r->prev;
    else
        waiting->tail = r->prev;
    if (r->prev != NONE)
        record_at(s, r->prev)->next = r->next;
    else
        waiting->head = r->next;
    if (waiting->head == NONE)
        place->levels &= ~(1u << level);
    if (own->next != NONE)
        wish_at(s, own->next)->prev = own->prev;
    else
        same->tail = own->prev;
    if (own->prev != NONE)
        wish_at(s, own->prev)->next = own->next;
    else
        same->head = own->next;
    own->place = NONE;
    place->tasks--;
    --*MF_AT(s, stats.queued, level);
    s->stats.for_place--;
    release_place(s, number);
    return 0;
}

/* Marks a task with this stamp as free to go anywhere. */
MF_INLINE void out_of_patience(struct mf_tasks *s, uint32_t task, uint64_t stamp)
{
    s->stats.out_of_patience++;
    wish_at(s, task)->gave_up = stamp >> STAMP_SHIFT;
}

/* Assigns a task out of patience to a suitable parked slot, or appends it to its list: tasks accepted before this moment go first (T3). */
static void go_anywhere(struct mf_tasks *s, struct mf_out *out, uint64_t now_ns, uint32_t task)
{
    struct record *r = record_at(s, task);
    out_of_patience(s, task, r->stamp);
    assign_or_queue(s, out, now_ns, task, r->stamp, list_for(&r->info));
}

#define WISHED (~0u) /* not a slot: the task waits for its place */

/* The destination of a newly accepted task: a slot parked at its preferred place, WISHED if it waits for one, or NONE if it may go
 * anywhere. It does not assign, because the kernel's stack has no room for that call below this one. */
MF_RARE uint32_t slot_or_wish(struct mf_tasks *s MF_IN_ARENA, uint32_t task, uint32_t wanted)
{
    MF_FROM_ARENA(s);
    uint32_t place = wanted >> PATIENCE_BITS, patience = wanted % (1u << PATIENCE_BITS);
    uint32_t slot_number = s->stats.parked == 0 ? NONE : best_parked_at(s, place, record_at(s, task)->info.resources);
    if (slot_number != NONE) {
        s->stats.at_place++;
        return slot_number;
    }
    if (patience == 0)
        return NONE;
    wish(s, task, place, patience);
    return WISHED;
}

/* The first task for the slot at a place, if it goes before `*level` and `*key`, which then become the task's; else NONE. */
MF_INLINE uint32_t first_at_place(struct mf_tasks *s, const struct slot *slot, uint32_t number, uint32_t *level, uint64_t *key)
{
    const struct place *place = place_at(s, number);
    uint32_t levels = place->levels & (*level < MF_LEVELS ? (2u << *level) - 1 : ~0u);
    for (; MF_LOOP(levels != 0); levels &= levels - 1) {
        uint32_t own = lowest_of_byte(s, levels) % MF_LEVELS, head = place->waiting[own].head;
        const struct record *r = record_at(s, head);
        if (r->info.resources & ~slot->resources)
            continue;
        if (own == *level && key_of(r) > *key && !(MF_MUTANT(92) && s->queue > 16)) /* planted bug: ignores age */
            return NONE;
        *level = own;
        *key = key_of(r);
        return head;
    }
    return NONE;
}

/* If a task that waits for one of the slot's places goes before the head of `list`, removes it from its lists and returns it; else NONE. By
 * level first, then by age (T4, T3). */
MF_RARE uint32_t take_from_place(struct mf_tasks *s MF_IN_ARENA, uint32_t slot_number, uint32_t list)
{
    MF_FROM_ARENA(s);
    const struct slot *slot = slot_at(s, slot_number);
    uint32_t level = list == NO_LIST ? MF_LEVELS : list / MASKS, best = NONE;
    uint64_t key = list == NO_LIST ? NO_TASK : *MF_AT(s, heads, list) >> STAMP_SHIFT;
    if (!slot->is_placed)
        return NONE;
    /* Planted bug: in a long queue a slot is at its first place only. */
    for (uint32_t k = MF_ZERO; MF_LOOP(k < (MF_MUTANT(90) && s->queue > 16 ? 1 : MF_SLOT_PLACES)); k++) {
        uint32_t place = seat_of(s, slot_number, k)->place, task = NONE;
        if (place != NONE)
            task = first_at_place(s, slot, place, &level, &key);
        if (task != NONE)
            best = task;
    }
    if (best != NONE) {
        s->stats.at_place++;
        wish_no_more(s, best);
    }
    return best;
}

/* When the patience of a task of this class, counted from 0, runs out. */
MF_INLINE uint64_t patience_ends_ns(struct mf_tasks *s, uint32_t task, uint32_t patience)
{
    if (MF_MUTANT(91) && s->queue > 16 && patience > 6)
        patience = 6; /* planted bug: waits end after 64 ms */
    return (key_of(record_at(s, task)) << KEY_SHIFT) + (1000000ull << patience);
}

/* The task whose patience ran out first, or NONE. Not class by class: an endless stream of tasks with short patience would starve the
 * others. */
MF_INLINE uint32_t first_out_of_patience(struct mf_tasks *s, uint64_t now_ns)
{
    uint32_t first = NONE;
    uint64_t first_ns = now_ns + 1;
    for (uint32_t patience = MF_ZERO; MF_LOOP(patience < PATIENCES); patience++) {
        uint32_t task = MF_AT(s, patience, patience % PATIENCES)->head;
        if (task == NONE || patience_ends_ns(s, task, patience) >= first_ns)
            continue;
        first = task;
        first_ns = patience_ends_ns(s, task, patience);
    }
    return first;
}

/* Part of a tick: frees tasks out of patience to go anywhere. It leaves half of the datagrams to expired leases, which such tasks would
 * otherwise starve. */
static void run_out_of_patience(struct mf_tasks *s, uint64_t now_ns, struct mf_out *out)
{
    for (uint32_t moved = MF_ZERO; MF_LOOP(moved < MF_TICK_WISHES && out->count < MF_OUT_MAX / 2); moved++) {
        uint32_t task = s->stats.for_place == 0 ? NONE : first_out_of_patience(s, now_ns);
        if (task == NONE)
            return;
        wish_no_more(s, task);
        go_anywhere(s, out, now_ns, task);
    }
}

#endif
