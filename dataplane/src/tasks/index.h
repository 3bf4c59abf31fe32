/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Hash tables with chains: clients by identity, slots by (executor, local number), tasks by (client, submission, index), sources by key. A
 * look-up follows at most CHAIN_MAX links. Buckets are salted, so an attacker cannot choose names that make long chains.
 *
 * An element's `back` is the cell that holds its number: its bucket, or the `next` of the previous element, as in the kernel's hlist. So
 * removal needs neither a search nor a branch.
 */
#ifndef MIDFLIGHT_INDEX_H
#define MIDFLIGHT_INDEX_H

#include "state.h"

/* A cell is a 32-bit word of the state, counted from its start. */
MF_INLINE uint32_t *cell_at(struct mf_tasks *s, uint32_t cell)
{
    return (uint32_t *)s + cell;
}

MF_INLINE uint32_t cell_of(const struct mf_tasks *s, const uint32_t *word)
{
    return (uint32_t)(word - (const uint32_t *)s);
}

#define MF_INDEX(name, link_of, bucket_of)                                                         \
    MF_INLINE void name##_insert(struct mf_tasks *s, uint32_t bucket, uint32_t i)                  \
    {                                                                                              \
        uint32_t *first = bucket_of(s, bucket);                                                    \
        struct link *own = link_of(s, i);                                                          \
        uint32_t next = *first;                                                                    \
        own->next = next;                                                                          \
        own->back = cell_of(s, first);                                                             \
        if (MF_UNLIKELY(next != NONE))                                                             \
            link_of(s, next)->back = cell_of(s, &own->next);                                       \
        *first = i;                                                                                \
    }                                                                                              \
    MF_INLINE void name##_remove(struct mf_tasks *s, uint32_t i)                                   \
    {                                                                                              \
        const struct link *own = link_of(s, i);                                                    \
        uint32_t next = own->next, back = own->back;                                               \
        *cell_at(s, back) = next;                                                                  \
        if (MF_UNLIKELY(next != NONE))                                                             \
            link_of(s, next)->back = back;                                                         \
    }

MF_INLINE struct link *task_link_at(struct mf_tasks *s, uint32_t i)
{
    return &record_at(s, i)->link;
}

MF_INLINE struct link *slot_link_at(struct mf_tasks *s, uint32_t i)
{
    return &slot_owner_at(s, i)->link;
}

MF_INLINE struct link *client_link_at(struct mf_tasks *s, uint32_t i)
{
    return &client_at(s, i)->link;
}

MF_INLINE struct link *source_link_at(struct mf_tasks *s, uint32_t i)
{
    return &source_at(s, i)->link;
}

MF_INLINE struct link *place_link_at(struct mf_tasks *s, uint32_t i)
{
    return &place_at(s, i)->link;
}

MF_INDEX(task_index, task_link_at, task_bucket_at)
MF_INDEX(slot_index, slot_link_at, slot_bucket_at)
MF_INDEX(client_index, client_link_at, client_bucket_at)
MF_INDEX(source_index, source_link_at, source_bucket_at)
MF_INDEX(place_index, place_link_at, place_bucket_at)

/* For this many consecutive SUBMITs, the buckets of the tasks with the same index are adjacent: the processor sees sequential reads and
 * prefetches. */
#define SUBMITS_A_PAGE 1024u

/* Distance between the buckets of two adjacent tasks of a SUBMIT: large, and a whole number of cache lines. */
#define TASK_STRIDE 0x9e3779b0u

MF_INLINE uint32_t task_bucket(const struct mf_tasks *s, uint32_t client, uint32_t submission, uint32_t index)
{
    uint64_t block = ((uint64_t)client << 32) | (submission / SUBMITS_A_PAGE);
    uint32_t page = mf_hash(block ^ s->salt) & ~(SUBMITS_A_PAGE - 1);
    return (page + index * TASK_STRIDE + submission % SUBMITS_A_PAGE) & s->task_buckets;
}

/* A task's second bucket, for when the first is taken: the same position in the table's other half. Using it is cheaper than writing a link
 * into the other task's record, which may not be cached. Tasks share a bucket only if both are taken. */
MF_INLINE uint32_t other_bucket(const struct mf_tasks *s, uint32_t bucket)
{
    return bucket ^ (s->task_buckets / 2 + 1);
}

MF_INLINE void name_task(struct mf_tasks *s, uint32_t bucket, uint32_t i)
{
    if (MF_UNLIKELY(*task_bucket_at(s, bucket) != NONE)) {
        uint32_t other = other_bucket(s, bucket);
        if (MF_LIKELY(*task_bucket_at(s, other) == NONE))
            bucket = other;
    }
    task_index_insert(s, bucket, i);
}

/* The buckets of this many consecutive slots of an executor are adjacent. Beyond that a salted hash decides: otherwise an executor could
 * number its slots so that all fall into one bucket. */
#define SLOTS_A_PAGE 64u

MF_INLINE uint32_t slot_bucket(const struct mf_tasks *s, uint64_t executor, uint32_t local)
{
    uint32_t page = (uint32_t)mf_mix(mf_mix(executor ^ s->salt) + local / SLOTS_A_PAGE);
    return (page + local % SLOTS_A_PAGE) & s->slot_buckets;
}

MF_INLINE uint32_t client_bucket(const struct mf_tasks *s, uint64_t identity)
{
    return mf_hash(identity ^ s->salt) & s->client_buckets;
}

/* The key of a source: an IPv4 address, or the first 64 bits of an IPv6 address. IPv4 addresses are ::ffff:a.b.c.d, so they differ in the
 * second half only. All of 127.0.0.0/8 has the key of ::1, because one host owns it. (In Rust: `Host` in crates/wire.) */
MF_INLINE uint64_t source_key(const struct mf_address *address)
{
    const struct address_words *words = (const struct address_words *)address;
    uint64_t low = mf_little64(words->low);
    int is_ipv4 = words->high == 0 && (uint32_t)low == 0xffff0000, is_loopback = (low >> 32 & 0xff) == 127;
    return is_ipv4 && !is_loopback ? words->low : words->high;
}

MF_INLINE uint32_t source_bucket(const struct mf_tasks *s, uint64_t key)
{
    return mf_hash(key ^ s->salt) & s->source_buckets;
}

MF_INLINE uint32_t find_task_in(struct mf_tasks *s, uint32_t bucket, uint32_t client, uint32_t submission, uint32_t index)
{
    uint32_t i = *task_bucket_at(s, bucket);
    for (uint32_t step = MF_ZERO; MF_LOOP(i != NONE && step < CHAIN_MAX); step++) {
        const struct record *r = record_at(s, i);
        if (r->client == client && r->submission == mf_net32(submission) && index_of(r) == index)
            return i;
        i = r->link.next;
    }
    return NONE;
}

/* The record of a queued or assigned task, or NONE. Of several with this name, the youngest. */
static uint32_t find_task(struct mf_tasks *s, uint32_t client, uint32_t submission, uint32_t index)
{
    uint32_t bucket = task_bucket(s, client, submission, index);
    uint32_t a = find_task_in(s, bucket, client, submission, index);
    uint32_t b = find_task_in(s, other_bucket(s, bucket), client, submission, index);
    if (a == NONE || b == NONE)
        return a == NONE ? b : a;
    return key_of(record_at(s, a)) > key_of(record_at(s, b)) ? a : b;
}

static uint32_t find_slot(struct mf_tasks *s, uint64_t executor, uint32_t local)
{
    uint32_t i = *slot_bucket_at(s, slot_bucket(s, executor, local));
    for (uint32_t step = MF_ZERO; MF_LOOP(i != NONE && step < CHAIN_MAX); step++) {
        const struct slot_owner *owner = slot_owner_at(s, i);
        if (owner->executor == executor && owner->local == local)
            return i;
        i = owner->link.next;
    }
    return NONE;
}

/* Searches a chain from `i` on. Separate from find_client, because the first client of a chain is nearly always the right one. */
MF_RARE uint32_t find_client_behind(struct mf_tasks *s MF_IN_ARENA, uint32_t i, uint64_t identity)
{
    MF_FROM_ARENA(s);
    for (uint32_t step = MF_ZERO; MF_LOOP(i != NONE && step < CHAIN_MAX); step++) {
        const struct client *c = client_at(s, i);
        if (c->identity == identity)
            return i;
        i = c->link.next;
    }
    return NONE;
}

MF_INLINE uint32_t find_client(struct mf_tasks *s, uint64_t identity)
{
    uint32_t i = *client_bucket_at(s, client_bucket(s, identity));
    if (MF_LIKELY(i != NONE && client_at(s, i)->identity == identity))
        return i;
    return find_client_behind(s, i, identity);
}

#endif
