/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Hash chains: clients by identity, slots by (executor, local number), tasks by (client, submission, index).
 * Looking one up follows at most CHAIN_MAX links. Buckets are salted with the switch's secret: nobody outside can make
 * chains long.
 *
 * `back` of an element names the cell that names the element: its bucket, or the `next` of the element before. So taking one
 * out costs the same wherever it stands, without a branch. Element 0 is written to where a chain ends, and never read.
 */
#ifndef MIDFLIGHT_INDEX_H
#define MIDFLIGHT_INDEX_H

#include "state.h"

/* A cell is a 32-bit word of the state, counted from its start. */
MF_INLINE uint32_t MF_FAR *cell_at(struct mf_tasks MF_FAR *s, uint32_t cell)
{
    return (uint32_t MF_FAR *)s + cell;
}

MF_INLINE uint32_t cell_of(const struct mf_tasks MF_FAR *s, const uint32_t MF_FAR *word)
{
    return (uint32_t)(word - (const uint32_t MF_FAR *)s);
}

#define MF_INDEX(name, link_of, bucket_of)                                                         \
    MF_INLINE void name##_insert(struct mf_tasks MF_FAR *s, uint32_t bucket, uint32_t i)                  \
    {                                                                                              \
        uint32_t MF_FAR *first = bucket_of(s, bucket);                                                    \
        struct link MF_FAR *own = link_of(s, i);                                                          \
        uint32_t next = *first;                                                                    \
        own->next = next;                                                                          \
        own->back = cell_of(s, first);                                                             \
        link_of(s, next)->back = cell_of(s, &own->next);                                           \
        *first = i;                                                                                \
    }                                                                                              \
    MF_INLINE void name##_remove(struct mf_tasks MF_FAR *s, uint32_t i)                                   \
    {                                                                                              \
        const struct link MF_FAR *own = link_of(s, i);                                                    \
        uint32_t next = own->next, back = own->back;                                               \
        *cell_at(s, back) = next;                                                                  \
        link_of(s, next)->back = back;                                                             \
    }

MF_INLINE struct link MF_FAR *task_link_at(struct mf_tasks MF_FAR *s, uint32_t i)
{
    return &record_at(s, i)->link;
}

MF_INLINE struct link MF_FAR *slot_link_at(struct mf_tasks MF_FAR *s, uint32_t i)
{
    return &slot_owner_at(s, i)->link;
}

MF_INLINE struct link MF_FAR *client_link_at(struct mf_tasks MF_FAR *s, uint32_t i)
{
    return &client_at(s, i)->link;
}

MF_INDEX(task_index, task_link_at, task_bucket_at)
MF_INDEX(slot_index, slot_link_at, slot_bucket_at)
MF_INDEX(client_index, client_link_at, client_bucket_at)

/* Tasks with one index of so many SUBMITs in a row share a cache line of buckets. */
#define SUBMITS_A_LINE 16u

/* Far from the bucket of one task of a SUBMIT to that of the next, and a whole number of cache lines. */
#define TASK_STRIDE 0x9e3779b0u

MF_INLINE uint32_t task_bucket(const struct mf_tasks MF_FAR *s, uint32_t client, uint32_t submission, uint32_t index)
{
    uint64_t block = ((uint64_t)client << 32) | (submission / SUBMITS_A_LINE);
    uint32_t line = mf_hash(block ^ s->secret) & ~(SUBMITS_A_LINE - 1);
    return (line + index * TASK_STRIDE + submission % SUBMITS_A_LINE) & s->task_buckets;
}

MF_INLINE uint32_t slot_bucket(const struct mf_tasks MF_FAR *s, uint64_t executor, uint32_t local)
{
    return (mf_hash(executor ^ s->secret) + local) & s->slot_buckets;
}

MF_INLINE uint32_t client_bucket(const struct mf_tasks MF_FAR *s, uint64_t identity)
{
    return mf_hash(identity ^ s->secret) & s->client_buckets;
}

/* The record of a task that is queued or assigned, or NONE. */
static uint32_t find_task(struct mf_tasks MF_FAR *s, uint32_t client, uint32_t submission, uint32_t index)
{
    uint32_t i = *task_bucket_at(s, task_bucket(s, client, submission, index));
    for (uint32_t step = MF_ZERO; MF_LOOP(i != NONE && step < CHAIN_MAX); step++) {
        const struct record MF_FAR *r = record_at(s, i);
        if (r->client == client && r->submission == mf_net32(submission) && index_of(r) == index)
            return i;
        i = r->link.next;
    }
    return NONE;
}

static uint32_t find_slot(struct mf_tasks MF_FAR *s, uint64_t executor, uint32_t local)
{
    uint32_t i = *slot_bucket_at(s, slot_bucket(s, executor, local));
    for (uint32_t step = MF_ZERO; MF_LOOP(i != NONE && step < CHAIN_MAX); step++) {
        const struct slot_owner MF_FAR *owner = slot_owner_at(s, i);
        if (owner->executor == executor && owner->local == local)
            return i;
        i = owner->link.next;
    }
    return NONE;
}

MF_INLINE uint32_t find_client(struct mf_tasks MF_FAR *s, uint64_t identity)
{
    uint32_t i = *client_bucket_at(s, client_bucket(s, identity));
    for (uint32_t step = MF_ZERO; MF_LOOP(i != NONE && step < CHAIN_MAX); step++) {
        const struct client MF_FAR *c = client_at(s, i);
        if (MF_LIKELY(c->identity == identity))
            return i;
        i = c->link.next;
    }
    return NONE;
}

#endif
