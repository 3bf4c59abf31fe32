/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Takes records, slots and clients out of their pools, and gives them back. */
#ifndef MIDFLIGHT_POOLS_H
#define MIDFLIGHT_POOLS_H

#include "index.h"

#define MF_POOL(name, pool, at, next)                                                              \
    MF_INLINE uint32_t take_##name(struct mf_tasks MF_FAR *s)                                             \
    {                                                                                              \
        uint32_t i = s->pool.free;                                                                 \
        if (i != NONE) {                                                                           \
            s->pool.free = at(s, i)->next;                                                         \
            MF_PREFETCH(at(s, s->pool.free)); /* for the next call */                              \
        } else if (s->pool.fresh < s->pool.capacity) {                                             \
            i = ++s->pool.fresh;                                                                   \
        } else {                                                                                   \
            return NONE;                                                                           \
        }                                                                                          \
        s->pool.used++;                                                                            \
        return i;                                                                                  \
    }                                                                                              \
    MF_INLINE void give_##name(struct mf_tasks MF_FAR *s, uint32_t i)                                     \
    {                                                                                              \
        at(s, i)->next = s->pool.free;                                                             \
        s->pool.free = i;                                                                          \
        s->pool.used--;                                                                            \
    }

MF_POOL(record, records, record_at, next)
MF_POOL(slot, slots, slot_at, next)
MF_POOL(client, clients, client_at, link.next)

/* Tasks that the queue has room for. */
MF_INLINE uint32_t room(const struct mf_tasks MF_FAR *s)
{
    return s->records.capacity - s->records.used;
}

/* Forgets a task: it is done or taken out. It is in no list and with no slot. */
MF_INLINE void forget_task(struct mf_tasks MF_FAR *s, uint32_t i)
{
    struct record MF_FAR *r = record_at(s, i);
    task_index_remove(s, i);
    client_at(s, r->client)->open--;
    set_state(r, RECORD_FREE);
    give_record(s, i);
}

#endif
