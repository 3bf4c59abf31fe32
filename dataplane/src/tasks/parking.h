/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Parked slots: those that wait while no task suits them, in one FIFO list per mask. A task goes to the slot with the fewest
 * resources that suffices, so that rare resources stay free; among equals to the one that has waited longest.
 */
#ifndef MIDFLIGHT_PARKING_H
#define MIDFLIGHT_PARKING_H

#include "state.h"

MF_INLINE void park(struct mf_tasks *s, uint32_t i)
{
    struct slot *slot = slot_at(s, i);
    struct list *list = &s->parked[slot->resources];
    slot->state = SLOT_WAITING;
    slot->parked_key = ++s->last_parked;
    slot->next = NONE;
    slot->prev = list->tail;
    if (list->tail != NONE)
        slot_at(s, list->tail)->next = i;
    else
        list->head = i;
    list->tail = i;
    s->parked_masks[slot->resources >> 6] |= 1ull << (slot->resources & 63);
    s->stats.parked++;
}

/* Takes a slot out of its list. It is FREE then. */
MF_INLINE void unpark(struct mf_tasks *s, uint32_t i)
{
    struct slot *slot = slot_at(s, i);
    struct list *list = &s->parked[slot->resources];
    if (slot->next != NONE)
        slot_at(s, slot->next)->prev = slot->prev;
    else
        list->tail = slot->prev;
    if (slot->prev != NONE)
        slot_at(s, slot->prev)->next = slot->next;
    else
        list->head = slot->next;
    if (list->head == NONE)
        s->parked_masks[slot->resources >> 6] &= ~(1ull << (slot->resources & 63));
    slot->state = SLOT_FREE;
    s->stats.parked--;
}

/* The one that has waited longest among the first of these masks' lists. */
static void longest_parked(struct mf_tasks *s, uint64_t candidates, uint32_t word, uint64_t *best, uint32_t *found)
{
    while (candidates) {
        uint32_t i = s->parked[word * 64 + mf_lowest_bit(candidates)].head;
        uint64_t key = slot_at(s, i)->parked_key;
        candidates &= candidates - 1;
        if (key < *best) {
            *best = key;
            *found = i;
        }
    }
}

/* The parked slot that a task with this mask goes to, or NONE. */
MF_INLINE uint32_t parked_for(struct mf_tasks *s, uint32_t mask)
{
    uint64_t candidates[MASK_WORDS], any = 0;
    if (MF_LIKELY(s->stats.parked == 0))
        return NONE;
    for (uint32_t word = 0; word < MASK_WORDS; word++)
        any |= candidates[word] = s->parked_masks[word] & masks_around(s, mask, word);
    if (!any)
        return NONE;
    for (uint32_t resources = 0; resources <= 8; resources++) {
        uint64_t best = ~0ull;
        uint32_t found = NONE;
        for (uint32_t word = 0; word < MASK_WORDS; word++)
            longest_parked(s, candidates[word] & s->sized[resources][word], word, &best, &found);
        if (found != NONE)
            return found;
    }
    return NONE;
}

#endif
