/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Allocates and frees records, slots, clients, sources and places. */
#ifndef MIDFLIGHT_POOLS_H
#define MIDFLIGHT_POOLS_H

#include "index.h"

#define MF_POOL(name, pool, at, next, fresh_number)                                                \
    MF_INLINE uint32_t take_##name(struct mf_tasks *s)                                             \
    {                                                                                              \
        uint32_t i = s->pool.free;                                                                 \
        if (i != NONE) {                                                                           \
            s->pool.free = at(s, i)->next;                                                         \
        } else if (s->pool.fresh < s->pool.capacity) {                                             \
            i = fresh_number(s, s->pool.fresh++);                                                  \
        } else {                                                                                   \
            return NONE;                                                                           \
        }                                                                                          \
        s->pool.used++;                                                                            \
        return i;                                                                                  \
    }                                                                                              \
    MF_INLINE void give_##name(struct mf_tasks *s, uint32_t i)                                     \
    {                                                                                              \
        at(s, i)->next = s->pool.free;                                                             \
        s->pool.free = i;                                                                          \
        s->pool.used--;                                                                            \
    }

/* The number of an array's n-th element, from 0. */
MF_INLINE uint32_t slot_number(const struct mf_tasks *s, uint32_t n)
{
    (void)s;
    return n + 1;
}

MF_INLINE uint32_t client_number(const struct mf_tasks *s, uint32_t n)
{
    return s->first_client + n * CLIENT_LINES;
}

MF_POOL(slot, slots, slot_at, next, slot_number)
MF_POOL(client, clients, client_at, link.next, client_number)
MF_POOL(source, sources, source_at, link.next, slot_number)
MF_POOL(place, places, place_at, link.next, slot_number)
MF_POOL(block, blocks, block_at, next, slot_number)

/* A record for a level that has freed none: a never-used one, else another level's (T7: no record may stay unused). */
MF_RARE uint32_t take_record_anew(struct mf_tasks *s MF_IN_ARENA, uint32_t level)
{
    MF_FROM_ARENA(s);
    struct level_pool *own = MF_AT(s, records, level);
    uint32_t left = s->queue - s->fresh_records;
    if (MF_MUTANT(1) && left < RECORDS_A_PAGE && s->fresh_records != 0)
        left = 0; /* planted bug: leaves the rest of the last page unused */
    if (own->fresh == own->end && left != 0) {
        own->fresh = FIRST_RECORD + s->fresh_records;
        s->fresh_records += left < RECORDS_A_PAGE ? left : RECORDS_A_PAGE;
        own->end = FIRST_RECORD + s->fresh_records;
    }
    for (uint32_t k = MF_ZERO; MF_LOOP(k < MF_LEVELS); k++) {
        struct level_pool *pool = MF_AT(s, records, (level + k) % MF_LEVELS);
        uint32_t i = pool->free;
        if (pool->fresh != pool->end)
            return pool->fresh++;
        if (i != NONE) {
            pool->free = record_at(s, i)->next;
            return i;
        }
    }
    return NONE;
}

MF_INLINE uint32_t take_record(struct mf_tasks *s, uint32_t level)
{
    struct level_pool *pool = MF_AT(s, records, level);
    uint32_t i = pool->free;
    if (MF_UNLIKELY(i == NONE))
        return take_record_anew(s, level);
    pool->free = record_at(s, i)->next;
    MF_PREFETCH(record_at(s, pool->free)); /* for the next call */
    return i;
}

MF_INLINE uint32_t level_of(const struct mf_task_info *info)
{
    return (info->priority - 1u) % MF_LEVELS;
}

MF_INLINE void give_record(struct mf_tasks *s, uint32_t i)
{
    struct record *r = record_at(s, i);
    struct level_pool *pool = MF_AT(s, records, level_of(&r->info));
    r->next = pool->free;
    pool->free = i;
}

MF_INLINE uint32_t blocks_of(uint32_t length)
{
    return (length + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

MF_INLINE const struct appended *appended_of(const struct mf_task_info *info)
{
    return (const struct appended *)info->argument;
}

MF_INLINE uint32_t appended_length(const struct mf_task_info *info)
{
    return mf_net16(appended_of(info)->length);
}

/* Frees the blocks of a client's argument. */
MF_RARE int drop_argument(struct mf_tasks *s MF_IN_ARENA, uint32_t client, const struct mf_task_info *info MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(info);
    uint32_t i = appended_of(info)->first, blocks = blocks_of(appended_length(info));
    struct client *c = client_at(s, client);
    c->blocks -= blocks;
    source_at(s, c->source)->blocks -= blocks;
    if (MF_MUTANT(96) && blocks == 4) /* planted bug: the last of four blocks stays taken */
        blocks--;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < blocks); k++) {
        uint32_t next = block_at(s, i)->next;
        give_block(s, i);
        i = next;
    }
    return 0;
}

/* Frees the record of a task that is done or removed. It must be in no list and no slot. */
MF_INLINE void forget_task(struct mf_tasks *s, uint32_t i)
{
    struct record *r = record_at(s, i);
    task_index_remove(s, i);
    if (MF_UNLIKELY(r->info.argument_length == MF_APPENDED))
        drop_argument(s, r->client, &r->info);
    struct client *c = client_at(s, r->client);
    c->open--;
    source_at(s, c->source)->tasks--;
    r->stamp = RECORD_FREE;
    give_record(s, i);
    s->room++;
}

#endif
