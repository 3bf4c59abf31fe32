/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The queue: one FIFO list per (level, mask), bitmaps of the lists that are not empty, and beside them the ranks of each
 * list's first two tasks. The oldest task that an executor may run is the smallest rank among the heads whose masks are
 * contained in the executor's: at most 256 comparisons, whatever the queue's length (T3, T4, T5, T12). The papers' swap
 * search is linear in the queue and reorders it.
 */
#ifndef MIDFLIGHT_QUEUE_H
#define MIDFLIGHT_QUEUE_H

#include "pools.h"

/* What stands for a task among its rivals: its key, and its mask to find its list again. */
MF_INLINE uint64_t rank_of(const struct record MF_FAR *r, uint32_t mask)
{
    return (r->stamp & -(1ull << STAMP_SHIFT)) | mask;
}

MF_INLINE uint64_t older(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

MF_INLINE void list_is_used(struct mf_tasks MF_FAR *s, uint32_t level, uint32_t mask)
{
    s->queued_masks[level][mask / GROUP] |= (uint8_t)(1u << mask % GROUP);
    s->queued_groups[level] |= 1u << mask / GROUP;
    s->levels_used |= 1u << level;
}

MF_INLINE void list_is_empty(struct mf_tasks MF_FAR *s, uint32_t level, uint32_t mask)
{
    if (s->queued_masks[level][mask / GROUP] &= (uint8_t)~(1u << mask % GROUP))
        return;
    if (s->queued_groups[level] &= ~(1u << mask / GROUP))
        return;
    s->levels_used &= ~(1u << level);
}

MF_INLINE uint32_t level_of(const struct record MF_FAR *r)
{
    return (uint32_t)(r->info.priority - 1) & (MF_LEVELS - 1);
}

/* First attempts stand at the tail, in the order of acceptance. */
MF_INLINE void queue_push_tail(struct mf_tasks MF_FAR *s, uint32_t i)
{
    struct record MF_FAR *r = record_at(s, i);
    uint32_t level = level_of(r), mask = r->info.resources;
    struct list MF_FAR *list = &s->queued[level][mask];
    uint32_t tail = list->tail;
    set_state(r, RECORD_QUEUED);
    r->next = NONE;
    r->prev = tail;
    list->tail = i;
    s->stats.queued[level]++;
    if (tail != NONE) {
        record_at(s, tail)->next = i;
        /* The youngest of all tasks: it is the second only where there is none. */
        s->seconds[level][mask] = older(s->seconds[level][mask], rank_of(r, mask));
        return;
    }
    list->head = i;
    s->heads[level][mask] = rank_of(r, mask);
    list_is_used(s, level, mask);
}

/* Further attempts go before all first ones (T3, T10); the key still says when the task was accepted. */
MF_INLINE void queue_push_head(struct mf_tasks MF_FAR *s, uint32_t i)
{
    struct record MF_FAR *r = record_at(s, i);
    uint32_t level = level_of(r), mask = r->info.resources;
    struct list MF_FAR *list = &s->queued[level][mask];
    set_state(r, RECORD_QUEUED);
    r->prev = NONE;
    r->next = list->head;
    if (list->head != NONE)
        record_at(s, list->head)->prev = i;
    else
        list->tail = i;
    list->head = i;
    s->seconds[level][mask] = s->heads[level][mask];
    s->heads[level][mask] = rank_of(r, mask);
    list_is_used(s, level, mask);
    s->stats.queued[level]++;
}

/* Remembers which task is the second of a list, and asks memory for the one behind it. */
MF_INLINE void set_second(struct mf_tasks MF_FAR *s, uint32_t level, uint32_t mask, uint32_t i)
{
    const struct record MF_FAR *r = record_at(s, i);
    s->seconds[level][mask] = i != NONE ? rank_of(r, mask) : NO_TASK;
    MF_PREFETCH(record_at(s, r->next));
}

/* Takes out the head of a list that has one. The next search must not wait for memory to learn the new head's rank: it is
 * known beforehand, and only that of the task behind it is fetched. */
MF_INLINE uint32_t queue_pop(struct mf_tasks MF_FAR *s, uint32_t level, uint32_t mask)
{
    struct list MF_FAR *list = &s->queued[level][mask];
    uint32_t i = list->head;
    uint32_t next = record_at(s, i)->next;
    s->heads[level][mask] = s->seconds[level][mask];
    list->head = next;
    s->stats.queued[level]--;
    if (MF_LIKELY(next != NONE)) {
        struct record MF_FAR *head = record_at(s, next);
        head->prev = NONE;
        set_second(s, level, mask, head->next);
    } else {
        list->tail = NONE;
        list_is_empty(s, level, mask);
    }
    return i;
}

/* Takes out a task wherever it stands. */
MF_INLINE void queue_remove(struct mf_tasks MF_FAR *s, uint32_t i)
{
    const struct record MF_FAR *r = record_at(s, i);
    uint32_t level = level_of(r), mask = r->info.resources;
    struct list MF_FAR *list = &s->queued[level][mask];
    if (r->prev == NONE) {
        queue_pop(s, level, mask);
        return;
    }
    record_at(s, r->prev)->next = r->next;
    if (r->next != NONE)
        record_at(s, r->next)->prev = r->prev;
    else
        list->tail = r->prev;
    if (r->prev == list->head)
        set_second(s, level, mask, r->next);
    s->stats.queued[level]--;
}

/* The oldest head of a level that an executor with these resources may run, or NO_TASK. Who offers all three low resources
 * may run all of a group: then bits need no look, and two chains of comparisons are followed at once. */
MF_INLINE uint64_t oldest_in_level(const struct mf_tasks MF_FAR *s, uint32_t level, uint32_t resources)
{
    uint32_t low = resources % GROUP;
    uint32_t groups = s->queued_groups[level] & s->groups_within[resources / GROUP];
    uint64_t even = NO_TASK, odd = NO_TASK;
    for (; MF_LOOP(groups); groups &= groups - 1) {
        uint32_t group = mf_lowest_bit(groups) % GROUPS;
        const uint64_t MF_FAR *heads = &s->heads[level][group * GROUP];
        if (MF_LIKELY(low == GROUP - 1)) {
#pragma GCC unroll 4
            for (uint32_t i = 0; i < GROUP; i += 2) {
                even = older(even, heads[i]);
                odd = older(odd, heads[i + 1]);
            }
            continue;
        }
        for (uint32_t masks = s->queued_masks[level][group] & s->subsets[low]; MF_LOOP(masks); masks &= masks - 1)
            even = older(even, heads[mf_lowest_bit(masks)]);
    }
    return older(even, odd);
}

/* Whether an executor with these resources could get a task. */
MF_INLINE int queue_suits(const struct mf_tasks MF_FAR *s, uint32_t resources)
{
    for (uint32_t level = MF_ZERO; MF_LOOP(level < MF_LEVELS); level++)
        if (oldest_in_level(s, level, resources) != NO_TASK)
            return 1;
    return 0;
}

/* Takes out the task that an executor with these resources gets next, or NONE. */
MF_INLINE uint32_t queue_take(struct mf_tasks MF_FAR *s, uint32_t resources)
{
    for (uint32_t levels = s->levels_used; MF_LOOP(levels); levels &= levels - 1) {
        uint32_t level = mf_lowest_bit(levels) % MF_LEVELS;
        uint64_t oldest = oldest_in_level(s, level, resources);
        if (MF_LIKELY(oldest != NO_TASK))
            return queue_pop(s, level, oldest % MASKS);
    }
    return NONE;
}

#endif
