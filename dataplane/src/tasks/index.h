/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Hash chains: clients by identity, slots by (executor, local number), tasks by (client, submission, index).
 * Chains are doubly linked, so taking an element out costs the same wherever it stands; looking one up follows at
 * most CHAIN_MAX links. Buckets are salted with the switch's secret: nobody outside can make chains long.
 *
 * `prev` of a chain's first element names its bucket (with the top bit set), of the others the element before.
 */
#ifndef MIDFLIGHT_INDEX_H
#define MIDFLIGHT_INDEX_H

#include "state.h"

#define IN_BUCKET 0x80000000u

#define MF_INDEX(name, link_of, bucket_of)                                                         \
    MF_INLINE void name##_insert(struct mf_tasks *s, uint32_t bucket, uint32_t i)                  \
    {                                                                                              \
        struct link *own = link_of(s, i);                                                          \
        uint32_t *first = bucket_of(s, bucket);                                                    \
        own->next = *first;                                                                        \
        own->prev = bucket | IN_BUCKET;                                                            \
        if (*first != NONE)                                                                        \
            link_of(s, *first)->prev = i;                                                          \
        *first = i;                                                                                \
    }                                                                                              \
    MF_INLINE void name##_remove(struct mf_tasks *s, uint32_t i)                                   \
    {                                                                                              \
        struct link *own = link_of(s, i);                                                          \
        if (own->prev & IN_BUCKET)                                                                 \
            *bucket_of(s, own->prev & ~IN_BUCKET) = own->next;                                     \
        else                                                                                       \
            link_of(s, own->prev)->next = own->next;                                               \
        if (own->next != NONE)                                                                     \
            link_of(s, own->next)->prev = own->prev;                                               \
    }

MF_INLINE struct link *slot_link_at(struct mf_tasks *s, uint32_t i)
{
    return &slot_owner_at(s, i)->link;
}

MF_INLINE struct link *client_link_at(struct mf_tasks *s, uint32_t i)
{
    return &client_at(s, i)->link;
}

MF_INDEX(task_index, task_link_at, task_bucket_at)
MF_INDEX(slot_index, slot_link_at, slot_bucket_at)
MF_INDEX(client_index, client_link_at, client_bucket_at)

/* Tasks of one SUBMIT, and of the next few of its client, lie in neighbouring buckets: one cache line. */
MF_INLINE uint32_t task_bucket(const struct mf_tasks *s, uint32_t client, uint32_t submission, uint32_t index)
{
    uint64_t block = ((uint64_t)client << 32) | (submission >> 4);
    return (uint32_t)(mf_mix(block ^ s->secret) + (submission & 15) + index) & s->task_buckets;
}

MF_INLINE uint32_t slot_bucket(const struct mf_tasks *s, uint64_t executor, uint32_t local)
{
    return (uint32_t)(mf_mix(executor ^ s->secret) + local) & s->slot_buckets;
}

MF_INLINE uint32_t client_bucket(const struct mf_tasks *s, uint64_t identity)
{
    return (uint32_t)mf_mix(identity ^ s->secret) & s->client_buckets;
}

/* The record of a task that is queued or assigned, or NONE. */
static uint32_t find_task(struct mf_tasks *s, uint32_t client, uint32_t submission, uint32_t index)
{
    uint32_t i = *task_bucket_at(s, task_bucket(s, client, submission, index));
    for (uint32_t step = 0; i != NONE && step < CHAIN_MAX; step++) {
        const struct record *r = record_at(s, i);
        if (r->client == client && r->submission == submission && r->index == index)
            return i;
        i = task_link_at(s, i)->next;
    }
    return NONE;
}

static uint32_t find_slot(struct mf_tasks *s, uint64_t executor, uint32_t local)
{
    uint32_t i = *slot_bucket_at(s, slot_bucket(s, executor, local));
    for (uint32_t step = 0; i != NONE && step < CHAIN_MAX; step++) {
        const struct slot_owner *owner = slot_owner_at(s, i);
        if (owner->executor == executor && owner->local == local)
            return i;
        i = owner->link.next;
    }
    return NONE;
}

MF_INLINE uint32_t find_client(struct mf_tasks *s, uint64_t identity)
{
    uint32_t i = *client_bucket_at(s, client_bucket(s, identity));
    for (uint32_t step = 0; i != NONE && step < CHAIN_MAX; step++) {
        const struct client *c = client_at(s, i);
        if (MF_LIKELY(c->identity == identity))
            return i;
        i = c->link.next;
    }
    return NONE;
}

#endif
