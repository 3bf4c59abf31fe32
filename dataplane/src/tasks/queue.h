/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The queue: one FIFO list per (level, mask), a bitmap of the lists that are not empty, and the key of each head
 * beside it. The oldest task that an executor may run is the smallest key among the heads whose masks are contained in the
 * executor's: at most 256 comparisons, whatever the queue's length (T3, T4, T5, T12). The papers' swap search is
 * linear in the queue and reorders it.
 */
#ifndef MIDFLIGHT_QUEUE_H
#define MIDFLIGHT_QUEUE_H

#include "pools.h"

#define NO_HEAD (~0ull)

/* What stands for a head among its rivals: its key, and its mask to find its list again. */
MF_INLINE void set_head(struct mf_tasks *s, uint32_t level, uint32_t mask, const struct record *head)
{
    s->heads[level][mask] = head->key << 8 | mask;
}

MF_INLINE void list_is_used(struct mf_tasks *s, uint32_t level, uint32_t mask)
{
    s->queued_masks[level][mask >> 6] |= 1ull << (mask & 63);
    s->levels_used |= 1u << level;
}

MF_INLINE void list_is_empty(struct mf_tasks *s, uint32_t level, uint32_t mask)
{
    uint64_t *words = s->queued_masks[level];
    s->heads[level][mask] = NO_HEAD;
    words[mask >> 6] &= ~(1ull << (mask & 63));
    if ((words[0] | words[1] | words[2] | words[3]) == 0)
        s->levels_used &= ~(1u << level);
}

MF_INLINE uint32_t level_of(const struct record *r)
{
    return (uint32_t)(r->info.priority - 1) & (MF_LEVELS - 1);
}

/* First attempts stand at the tail, in the order of acceptance. */
MF_INLINE void queue_push_tail(struct mf_tasks *s, uint32_t i)
{
    struct record *r = record_at(s, i);
    uint32_t level = level_of(r), mask = r->info.resources;
    struct list *list = &s->queued[level][mask];
    r->state = RECORD_QUEUED;
    r->next = NONE;
    r->prev = list->tail;
    if (list->tail != NONE) {
        record_at(s, list->tail)->next = i;
    } else {
        list->head = i;
        set_head(s, level, mask, r);
        list_is_used(s, level, mask);
    }
    list->tail = i;
    s->stats.queued[level]++;
}

/* Further attempts go before all first ones (T3, T10); the key still says when the task was accepted. */
MF_INLINE void queue_push_head(struct mf_tasks *s, uint32_t i)
{
    struct record *r = record_at(s, i);
    uint32_t level = level_of(r), mask = r->info.resources;
    struct list *list = &s->queued[level][mask];
    r->state = RECORD_QUEUED;
    r->prev = NONE;
    r->next = list->head;
    if (list->head != NONE)
        record_at(s, list->head)->prev = i;
    else
        list->tail = i;
    list->head = i;
    set_head(s, level, mask, r);
    list_is_used(s, level, mask);
    s->stats.queued[level]++;
}

MF_INLINE void queue_remove(struct mf_tasks *s, uint32_t i)
{
    const struct record *r = record_at(s, i);
    uint32_t level = level_of(r), mask = r->info.resources;
    struct list *list = &s->queued[level][mask];
    if (r->next != NONE)
        record_at(s, r->next)->prev = r->prev;
    else
        list->tail = r->prev;
    if (r->prev != NONE) {
        record_at(s, r->prev)->next = r->next;
    } else {
        list->head = r->next;
        if (r->next != NONE) {
            const struct record *head = record_at(s, r->next);
            set_head(s, level, mask, head);
            /* By the time this list is served again, the record behind its head has arrived from memory. */
            MF_PREFETCH(record_at(s, head->next));
        } else {
            list_is_empty(s, level, mask);
        }
    }
    s->stats.queued[level]--;
}

MF_INLINE uint64_t older(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The oldest of the heads whose bits are set: one by one, or, where it is all 64, in four chains that a processor
 * follows at once. */
MF_INLINE uint64_t oldest_in_word(const uint64_t *heads, uint64_t candidates)
{
    uint64_t oldest = NO_HEAD, chain[3] = {NO_HEAD, NO_HEAD, NO_HEAD};
    if (MF_LIKELY(candidates != ~0ull)) {
        for (; candidates; candidates &= candidates - 1)
            oldest = older(oldest, heads[mf_lowest_bit(candidates)]);
        return oldest;
    }
    for (uint32_t i = 0; i < 64; i += 4) {
        oldest = older(oldest, heads[i]);
        chain[0] = older(chain[0], heads[i + 1]);
        chain[1] = older(chain[1], heads[i + 2]);
        chain[2] = older(chain[2], heads[i + 3]);
    }
    return older(older(oldest, chain[0]), older(chain[1], chain[2]));
}

/* The task that an executor with these resources gets next, or NONE. */
MF_INLINE uint32_t queue_oldest(struct mf_tasks *s, uint32_t resources)
{
    uint64_t within = s->subsets[resources & 63]; /* masks_within(), where the high bits allow any */
    uint32_t high = resources >> 6;
    for (uint32_t levels = s->levels_used; levels; levels &= levels - 1) {
        uint32_t level = mf_lowest_bit(levels) & (MF_LEVELS - 1);
        const uint64_t *words = s->queued_masks[level], *heads = s->heads[level];
        uint64_t oldest = oldest_in_word(heads, words[0] & within);
        for (uint32_t word = 1; word < MASK_WORDS; word++)
            if ((words[word] & within) && (word & ~high) == 0)
                oldest = older(oldest, oldest_in_word(heads + word * 64, words[word] & within));
        if (MF_LIKELY(oldest != NO_HEAD))
            return s->queued[level][oldest & (MASKS - 1)].head;
    }
    return NONE;
}

#endif
