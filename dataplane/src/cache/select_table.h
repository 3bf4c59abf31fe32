/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Requests in flight, by a number that their answers repeat (RV): the request's slot, and in the remaining bits a generation, which changes
 * at each use of the slot. The slot free for longest is used next, so a number recurs as late as possible.
 */
#ifndef MIDFLIGHT_CACHE_SELECT_TABLE_H
#define MIDFLIGHT_CACHE_SELECT_TABLE_H

#include "select_groups.h"

MF_INLINE struct under_way *slot_at(struct mf_cache *s, uint32_t slot)
{
    return (struct under_way *)((uint8_t *)s + s->selection.slots_at) + (slot & (s->selection.slots - 1));
}

/* Takes a slot for a request; NO_SLOT: all are in use. The caller writes whose request it is. */
MF_INLINE uint32_t take_slot(struct mf_cache *s, uint64_t now_ns, uint32_t server)
{
    struct selection *selection = &s->selection;
    uint32_t slot = selection->free;
    if (MF_UNLIKELY(slot == NO_SLOT))
        return NO_SLOT;
    struct under_way *entry = slot_at(s, slot);
    selection->free = entry->after;
    entry->retained = (uint16_t)(((entry->retained >> selection->slot_bits) + 1u) << selection->slot_bits | slot);
    entry->server = server;
    entry->sent_ns = now_ns;
    entry->is_used = 1;
    entry->before = selection->newest;
    entry->after = NO_SLOT;
    if (selection->newest == NO_SLOT)
        selection->oldest = slot;
    else
        slot_at(s, selection->newest)->after = slot;
    selection->newest = slot;
    s->stats.under_way++;
    return slot;
}

MF_INLINE void free_slot(struct mf_cache *s, uint32_t slot)
{
    struct selection *selection = &s->selection;
    struct under_way *entry = slot_at(s, slot);
    if (entry->before == NO_SLOT)
        selection->oldest = entry->after;
    else
        slot_at(s, entry->before)->after = entry->after;
    if (entry->after == NO_SLOT)
        selection->newest = entry->before;
    else
        slot_at(s, entry->after)->before = entry->before;
    entry->is_used = 0;
    entry->after = NO_SLOT;
    if (selection->free == NO_SLOT)
        selection->free = slot;
    else
        slot_at(s, selection->free_last)->after = slot;
    selection->free_last = slot;
    s->stats.under_way--;
}

/* Compares all bytes, including the reserved ones. */
MF_INLINE int is_same_client(const struct mf_address *a, const struct mf_address *b)
{
    const struct address_words *x = (const struct address_words *)a, *y = (const struct address_words *)b;
    return ((x->high ^ y->high) | (x->low ^ y->low) | (uint64_t)(x->port ^ y->port) |
            (uint64_t)(x->reserved ^ y->reserved)) == 0;
}

/* The slot of the request that an answer with these ends is for; NO_SLOT: none (any more). N7: the number alone proves too little. */
MF_INLINE uint32_t find_slot(struct mf_cache *s, uint64_t now_ns, uint32_t retained, const struct mf_ends *ends)
{
    uint32_t slot = retained & (s->selection.slots - 1);
    const struct under_way *entry = slot_at(s, slot);
    if (MF_UNLIKELY(!entry->is_used || entry->retained != retained || entry->request != ends->request))
        return NO_SLOT;
    if (MF_UNLIKELY(!is_same_client(&entry->client, &ends->client) || now_ns - entry->sent_ns >= s->selection.expire_ns))
        return NO_SLOT;
    const struct mf_address *server = &server_at(s, entry->server)->address;
    const struct address_words *a = (const struct address_words *)server, *b = (const struct address_words *)&ends->server;
    return ((a->high ^ b->high) | (a->low ^ b->low) | (uint64_t)(a->port ^ b->port)) == 0 ? slot : NO_SLOT;
}

#endif
