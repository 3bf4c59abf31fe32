/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Places of slots (T19). A slot has up to two, with a seat at each. While the slot is parked, its seats are also in the places' parked
 * lists. Only executors create places: a client that names an unknown one leaves no state.
 */
#ifndef MIDFLIGHT_PLACES_H
#define MIDFLIGHT_PLACES_H

#include "pools.h"

MF_INLINE uint32_t place_bucket(const struct mf_tasks *s, uint32_t name)
{
    return mf_hash(name ^ s->salt) & s->place_buckets;
}

/* The place with this name (in network byte order), or NONE. */
MF_RARE uint32_t find_place(struct mf_tasks *s MF_IN_ARENA, uint32_t name)
{
    MF_FROM_ARENA(s);
    uint32_t i = *place_bucket_at(s, place_bucket(s, name));
    for (uint32_t step = MF_ZERO; MF_LOOP(i != NONE && step < CHAIN_MAX); step++) {
        if (place_at(s, i)->name == name)
            return i;
        i = place_at(s, i)->link.next;
    }
    return NONE;
}

MF_INLINE void release_place(struct mf_tasks *s, uint32_t i)
{
    const struct place *place = place_at(s, i);
    if (place->slots != 0 || place->tasks != 0 || (MF_MUTANT(93) && s->queue > 16)) /* planted bug: keeps it */
        return;
    place_index_remove(s, i);
    give_place(s, i);
    s->stats.places--;
}

MF_INLINE struct seat *seat_of(struct mf_tasks *s, uint32_t slot, uint32_t k)
{
    return seat_at(s, slot * MF_SLOT_PLACES + k);
}

/* Enters a newly parked slot at its places. */
MF_RARE int park_at_places(struct mf_tasks *s MF_IN_ARENA, uint32_t slot)
{
    MF_FROM_ARENA(s);
    uint32_t mask = slot_at(s, slot)->resources;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < MF_SLOT_PLACES); k++) {
        struct seat *seat = seat_of(s, slot, k);
        if (seat->place == NONE)
            continue;
        struct parking *parked = &place_at(s, seat->place)->parked;
        struct list *list = &parked->lists[mask];
        uint32_t i = slot * MF_SLOT_PLACES + k;
        seat->next = NONE;
        seat->prev = list->tail;
        if (list->tail != NONE)
            seat_at(s, list->tail)->next = i;
        else
            list->head = i;
        list->tail = i;
        parked->masks[mask >> 6] |= 1ull << (mask & 63);
    }
    return 0;
}

/* Removes a slot that is no longer parked from its places' lists. */
MF_RARE int unpark_at_places(struct mf_tasks *s MF_IN_ARENA, uint32_t slot)
{
    MF_FROM_ARENA(s);
    uint32_t mask = slot_at(s, slot)->resources;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < MF_SLOT_PLACES); k++) {
        const struct seat *seat = seat_of(s, slot, k);
        if (seat->place == NONE)
            continue;
        struct parking *parked = &place_at(s, seat->place)->parked;
        struct list *list = &parked->lists[mask];
        if (seat->next != NONE)
            seat_at(s, seat->next)->prev = seat->prev;
        else
            list->tail = seat->prev;
        if (seat->prev != NONE)
            seat_at(s, seat->prev)->next = seat->next;
        else
            list->head = seat->next;
        if (list->head == NONE)
            parked->masks[mask >> 6] &= ~(1ull << (mask & 63));
    }
    return 0;
}

/* Bitmap of the masks in `word` that have parked slots, contain the task's mask, and have this number of resources. */
MF_INLINE uint64_t candidates(const struct mf_tasks *s, const struct parking *parked, uint32_t mask, uint32_t resources,
                              uint32_t word)
{
    return parked->masks[word] & masks_around(s, mask, word) & s->sized[resources][word];
}

MF_INLINE int waits_for_place(struct mf_tasks *s, uint32_t task)
{
    return s->stats.for_place != 0 && wish_at(s, task)->place != NONE;
}

#endif
