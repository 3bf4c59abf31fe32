/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Parked slots wait for a task, in one FIFO list per mask. A task goes to the slot with the fewest resources that suffice, which keeps rare
 * resources free; among equals, to the one parked longest.
 */
#ifndef MIDFLIGHT_PARKING_H
#define MIDFLIGHT_PARKING_H

#include "places.h"

MF_INLINE void park(struct mf_tasks *s, uint32_t i)
{
    struct slot *slot = slot_at(s, i);
    struct list *list = &s->parked.lists[slot->resources];
    slot->state = SLOT_WAITING;
    slot->parked_key = ++s->last_parked;
    slot->next = NONE;
    slot->prev = list->tail;
    if (list->tail != NONE)
        slot_at(s, list->tail)->next = i;
    else
        list->head = i;
    list->tail = i;
    s->parked.masks[slot->resources >> 6] |= 1ull << (slot->resources & 63);
    s->stats.parked++;
    if (MF_UNLIKELY(slot->is_placed))
        park_at_places(s, i);
}

/* Takes a slot out of its list and makes it FREE. */
MF_INLINE void unpark(struct mf_tasks *s, uint32_t i)
{
    struct slot *slot = slot_at(s, i);
    struct list *list = &s->parked.lists[slot->resources];
    if (slot->next != NONE)
        slot_at(s, slot->next)->prev = slot->prev;
    else
        list->tail = slot->prev;
    if (slot->prev != NONE)
        slot_at(s, slot->prev)->next = slot->next;
    else
        list->head = slot->next;
    if (list->head == NONE)
        s->parked.masks[slot->resources >> 6] &= ~(1ull << (slot->resources & 63));
    slot->state = SLOT_FREE;
    s->stats.parked--;
    if (MF_UNLIKELY(slot->is_placed))
        unpark_at_places(s, i);
}

/* The slot parked longest, of `found` and the heads of these masks' lists. */
MF_INLINE uint32_t longest_parked(struct mf_tasks *s, uint64_t masks, uint32_t word, uint32_t found)
{
    for (; MF_LOOP(masks); masks &= masks - 1) {
        uint32_t i = s->parked.lists[word * 64 + mf_lowest_bit(masks)].head;
        if (found == NONE || slot_at(s, i)->parked_key < slot_at(s, found)->parked_key)
            found = i;
    }
    return found;
}

/* The parked slot for a task with this mask, or NONE. */
MF_RARE uint32_t best_parked(struct mf_tasks *s MF_IN_ARENA, uint32_t mask)
{
    MF_FROM_ARENA(s);
    for (uint32_t resources = MF_ZERO; MF_LOOP(resources < SIZES); resources++) {
        uint32_t found = NONE;
        for (uint32_t word = 0; word < MASK_WORDS; word += 1 + (MF_MUTANT(3) && word == 1)) /* planted bug: skips the third */
            found = longest_parked(s, candidates(s, &s->parked, mask, resources, word), word, found);
        if (found != NONE)
            return found;
    }
    return NONE;
}

MF_INLINE uint32_t parked_for(struct mf_tasks *s, uint32_t mask)
{
    return MF_LIKELY(s->stats.parked == 0) ? NONE : best_parked(s, mask);
}

#endif
