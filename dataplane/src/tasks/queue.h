/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The queue: one FIFO list per (level, mask), and bitmaps of the lists that are not empty. It also keeps the ranks of each list's first two
 * tasks, and of the oldest head in each group of eight masks. The oldest task for an executor has the smallest rank among the heads whose
 * masks the executor's contains: a few comparisons, whatever the queue's length (T3, T4, T5, T12). The papers' search by swapping is linear
 * in the queue and reorders it.
 *
 * A list's number combines level and mask.
 */
#ifndef MIDFLIGHT_QUEUE_H
#define MIDFLIGHT_QUEUE_H

#include "pools.h"

#define NO_LIST (~0u)

MF_INLINE uint32_t list_of(uint32_t level, uint32_t mask)
{
    return level * MASKS + mask;
}

MF_INLINE uint32_t list_for(const struct mf_task_info *info)
{
    return list_of(level_of(info), info->resources);
}

/* The rank that orders heads: a task's key, with its mask in the low byte, which identifies the list. */
MF_INLINE uint64_t rank_of(uint64_t stamp, uint32_t list)
{
    return (stamp & -(1ull << STAMP_SHIFT)) | list % MASKS;
}

/* The smaller rank, selected by the sign of the difference: BPF has no conditional move, and a branch would often be mispredicted. */
MF_INLINE uint64_t older(uint64_t a, uint64_t b)
{
#ifdef __bpf__
    uint64_t apart = a - b, all_if_below = (uint64_t)((int64_t)apart >> 63);
    __asm__("" : "+r"(all_if_below)); /* otherwise clang recognises a condition and emits a branch */
    return b + (apart & all_if_below);
#else
    return a < b ? a : b;
#endif
}

/* The smallest rank of a group, from its four pairs. */
MF_INLINE uint64_t oldest_of(const uint64_t *pairs)
{
    return older(older(pairs[0], pairs[1]), older(pairs[2], pairs[3]));
}

/* Records the rank of a list's new head, or that it has none. */
MF_INLINE void set_head(struct mf_tasks *s, uint32_t list, uint64_t rank)
{
    *MF_AT(s, heads, list) = rank;
    *MF_AT(s, pairs, list / 2) = older(rank, *MF_AT(s, heads, list ^ 1));
    *MF_AT(s, oldest, list / GROUP) = oldest_of(MF_AT(s, pairs, list / GROUP * (GROUP / 2)));
}

MF_INLINE void list_is_used(struct mf_tasks *s, uint32_t list)
{
    uint32_t level = list / MASKS;
    *MF_AT(s, queued_masks, list / GROUP) |= (uint8_t)(1u << list % GROUP);
    *MF_AT(s, queued_groups, level) |= 1u << list / GROUP % GROUPS;
    s->levels_used |= 1u << level;
}

MF_INLINE void list_is_empty(struct mf_tasks *s, uint32_t list)
{
    uint32_t level = list / MASKS;
    if (*MF_AT(s, queued_masks, list / GROUP) &= (uint8_t)~(1u << list % GROUP))
        return;
    if (*MF_AT(s, queued_groups, level) &= ~(1u << list / GROUP % GROUPS))
        return;
    s->levels_used &= ~(1u << level);
}

/* First attempts are appended, so a list is in the order of acceptance. */
MF_INLINE void queue_push_tail(struct mf_tasks *s, uint32_t i, uint64_t stamp, uint32_t list)
{
    struct record *r = record_at(s, i);
    struct queue *queue = MF_AT(s, queued, list);
    uint32_t tail = queue->tail;
    r->next = NONE;
    r->prev = tail;
    queue->tail = i;
    ++*MF_AT(s, stats.queued, list / MASKS);
    if (MF_LIKELY(tail != NONE)) {
        record_at(s, tail)->next = i;
        if (MF_UNLIKELY(tail == queue->head))
            queue->second = rank_of(stamp, list);
        return;
    }
    queue->head = i;
    set_head(s, list, rank_of(stamp, list));
    list_is_used(s, list);
}

/* Further attempts go before all first attempts (T3, T10); the key remains the acceptance time. */
MF_INLINE void queue_push_head(struct mf_tasks *s, uint32_t i)
{
    struct record *r = record_at(s, i);
    uint32_t list = list_for(&r->info);
    struct queue *queue = MF_AT(s, queued, list);
    set_state(r, RECORD_QUEUED);
    r->next = queue->head;
    if (queue->head != NONE)
        record_at(s, queue->head)->prev = i;
    else
        queue->tail = i;
    queue->head = i;
    queue->second = *MF_AT(s, heads, list);
    set_head(s, list, rank_of(r->stamp, list));
    list_is_used(s, list);
    ++*MF_AT(s, stats.queued, list / MASKS);
}

MF_INLINE uint32_t queue_head(struct mf_tasks *s, uint32_t list)
{
    return MF_AT(s, queued, list)->head;
}

/* Removes the head of a list that is not empty. The next search must not wait for memory to learn the new head's rank, so `second` already
 * holds it; this reads the rank after it. Record 0 represents a missing task. */
MF_INLINE void queue_pop(struct mf_tasks *s, uint32_t list, uint32_t head)
{
    struct queue *queue = MF_AT(s, queued, list);
    uint32_t next = record_at(s, head)->next;
    const struct record *second = record_at(s, record_at(s, next)->next);
    set_head(s, list, queue->second);
    queue->head = next;
    --*MF_AT(s, stats.queued, list / MASKS);
    queue->second = rank_of(second->stamp, list);
    MF_PREFETCH(record_at(s, second->next));
    if (MF_UNLIKELY(next == NONE)) {
        queue->tail = NONE;
        list_is_empty(s, list);
    }
}

MF_INLINE void queue_remove(struct mf_tasks *s, uint32_t i)
{
    const struct record *r = record_at(s, i);
    uint32_t list = list_for(&r->info);
    struct queue *queue = MF_AT(s, queued, list);
    if (queue->head == i) {
        queue_pop(s, list, i);
        return;
    }
    record_at(s, r->prev)->next = r->next;
    if (r->next != NONE)
        record_at(s, r->next)->prev = r->prev;
    else if (!MF_MUTANT(8) || s->stats.queued[list / MASKS] <= 16) /* planted bug: a long list keeps its old tail */
        queue->tail = r->prev;
    if (r->prev == queue->head)
        queue->second = rank_of(record_at(s, r->next)->stamp, list);
    --*MF_AT(s, stats.queued, list / MASKS);
}

/* Whether an executor with these resources may run the task of this rank. */
MF_INLINE int suits(uint64_t rank, uint32_t resources)
{
    return (rank % MASKS & ~resources) == 0;
}

/* The rank of the oldest head of a group that an executor with these resources may run, or NO_TASK. */
MF_INLINE uint64_t oldest_in_group(const struct mf_tasks *s, uint32_t group, uint32_t resources)
{
    uint64_t oldest = *MF_AT(s, oldest, group);
    if (MF_LIKELY(suits(oldest, resources)))
        return oldest;
    oldest = NO_TASK;
    uint32_t masks = *MF_AT(s, queued_masks, group) & *MF_AT(s, subsets, resources % GROUP);
    for (; MF_LOOP(masks); masks &= masks - 1)
        oldest = older(oldest, *MF_AT(s, heads, group * GROUP + lowest_of_byte(s, masks)));
    return oldest;
}

/* The same for several groups: the bitmap `groups` counts from group `first`. */
MF_RARE uint64_t oldest_in_groups(const struct mf_tasks *s MF_IN_ARENA, uint32_t first, uint32_t groups, uint32_t resources)
{
    MF_FROM_ARENA(s);
    uint64_t oldest = NO_TASK;
    for (; MF_LOOP(groups); groups &= groups - 1)
        oldest = older(oldest, oldest_in_group(s, first + mf_lowest_bit(groups) % GROUPS, resources));
    return oldest;
}

/* The same for a level. Most clusters use few resources, so usually there is one group, and its oldest head suits. */
MF_INLINE uint64_t oldest_in_level(const struct mf_tasks *s, uint32_t level, uint32_t resources)
{
    uint32_t groups = *MF_AT(s, queued_groups, level) & *MF_AT(s, groups_within, resources / GROUP);
    if (groups == 0)
        return NO_TASK;
    uint32_t group = lowest_of_byte(s, groups % 256);
    /* Planted bug: in a long queue the oldest task of the first group counts as the oldest of all. */
    if (MF_LIKELY(groups >> group == 1) || (MF_MUTANT(12) && *MF_AT(s, stats.queued, level) > 16)) {
        uint64_t oldest = *MF_AT(s, oldest, level * GROUPS + group);
        if (MF_LIKELY(suits(oldest, resources)))
            return oldest;
    }
    return oldest_in_groups(s, level * GROUPS, groups, resources);
}

MF_INLINE int queue_suits(const struct mf_tasks *s, uint32_t resources)
{
    for (uint32_t level = MF_ZERO; MF_LOOP(level < MF_LEVELS); level++)
        if (oldest_in_level(s, level, resources) < NO_TASK)
            return 1;
    return 0;
}

/* The list whose head an executor with these resources gets next, or NO_LIST. */
MF_INLINE uint32_t queue_find(const struct mf_tasks *s, uint32_t resources)
{
    uint32_t levels = s->levels_used;
    if (levels == 0)
        return NO_LIST;
    if (MF_MUTANT(14) && *MF_AT(s, stats.queued, s->levels - 1) > 16) { /* planted bug: a long last level comes first */
        uint64_t oldest = oldest_in_level(s, s->levels - 1, resources);
        if (oldest < NO_TASK)
            return list_of(s->levels - 1, oldest % MASKS);
    }
    do {
        uint32_t level = lowest_of_byte(s, levels);
        uint64_t oldest = oldest_in_level(s, level, resources);
        if (MF_LIKELY(oldest < NO_TASK))
            return list_of(level, oldest % MASKS);
        levels &= levels - 1;
    } while (MF_UNLIKELY(MF_LOOP(levels)));
    return NO_LIST;
}

#endif
