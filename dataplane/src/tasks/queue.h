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

MF_INLINE void list_is_used(struct mf_tasks *s, uint32_t level, uint32_t mask)
{
    s->queued_masks[level][mask >> 6] |= 1ull << (mask & 63);
    s->levels_used |= 1u << level;
}

MF_INLINE void list_is_empty(struct mf_tasks *s, uint32_t level, uint32_t mask)
{
    uint64_t *words = s->queued_masks[level];
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
        s->head_key[level][mask] = r->key;
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
    s->head_key[level][mask] = r->key;
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
            s->head_key[level][mask] = head->key;
            /* By the time this list is served again, the record behind its head has arrived from memory. */
            MF_PREFETCH(record_at(s, head->next));
        } else {
            list_is_empty(s, level, mask);
        }
    }
    s->stats.queued[level]--;
}

/* The smallest key among the heads in one word of masks; `best` and `best_mask` keep the winner. Few candidates are
 * visited one by one, many by a scan without branches. */
MF_INLINE void oldest_in_word(const uint64_t *key, uint64_t candidates, uint32_t word, uint64_t *best,
                              uint32_t *best_mask)
{
    if (__builtin_popcountll(candidates) <= 16) {
        while (candidates) {
            uint32_t mask = word * 64 + (uint32_t)__builtin_ctzll(candidates);
            candidates &= candidates - 1;
            uint64_t k = key[mask];
            *best_mask = k < *best ? mask : *best_mask;
            *best = k < *best ? k : *best;
        }
        return;
    }
    for (uint32_t bit = 0; bit < 64; bit++) {
        uint64_t k = key[word * 64 + bit] | (((candidates >> bit) & 1) - 1);
        *best_mask = k < *best ? word * 64 + bit : *best_mask;
        *best = k < *best ? k : *best;
    }
}

/* The task that an executor with these resources gets next, or NONE. */
MF_INLINE uint32_t queue_oldest(struct mf_tasks *s, uint32_t resources)
{
    uint32_t levels = s->levels_used;
    while (levels) {
        uint32_t level = (uint32_t)__builtin_ctz(levels) & (MF_LEVELS - 1);
        uint64_t best = ~0ull;
        uint32_t best_mask = 0;
        levels &= levels - 1;
        for (uint32_t word = 0; word < MASK_WORDS; word++) {
            uint64_t candidates = s->queued_masks[level][word] & masks_within(s, resources, word);
            if (candidates)
                oldest_in_word(s->head_key[level], candidates, word, &best, &best_mask);
        }
        if (best != ~0ull)
            return s->queued[level][best_mask].head;
    }
    return NONE;
}

#endif
