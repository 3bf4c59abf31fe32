// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* Initialises a queue's state, also for the kernel: it holds offsets and indices, not pointers. */
#include "shared/siphash.h"
#include "tasks/state.h"

/* Gap between the arrays. ASan builds set it to detect an index out of bounds. */
#ifndef MF_REDZONE
#define MF_REDZONE 0
#endif

static uint64_t pad(uint64_t bytes)
{
    return ((bytes + 63) & ~63ull) + MF_REDZONE;
}

static uint32_t buckets_for(uint32_t elements)
{
    uint32_t buckets = 64;
    while (buckets < elements)
        buckets *= 2;
    return buckets;
}

/* Each client and each slot may have a source of its own. */
static uint32_t sources_for(const struct mf_tasks_config *c)
{
    return c->clients + c->slots;
}

static uint32_t blocks_for(const struct mf_tasks_config *c)
{
    return c->arguments * (1024 / (uint32_t)sizeof(struct block));
}

/* Sets the offsets of the arrays and returns the total size. Slot, source, place and block 0 are never used. */
static uint64_t lay_out(struct mf_tasks *s, const struct mf_tasks_config *c)
{
    uint64_t at = pad((uint64_t)FIRST_RECORD * LINE + c->queue * sizeof(struct record));
    s->task_buckets_at = at;
    at = pad(at + (uint64_t)buckets_for(4 * c->queue) * sizeof(uint32_t));
    s->slots_at = at;
    at = pad(at + (c->slots + 1ull) * sizeof(struct slot));
    s->slot_owners_at = at;
    at = pad(at + (c->slots + 1ull) * sizeof(struct slot_owner));
    s->slot_buckets_at = at;
    at = pad(at + (uint64_t)buckets_for(c->slots) * sizeof(uint32_t));
    s->first_client = (uint32_t)(at / LINE);
    at = pad(at + c->clients * sizeof(struct client));
    s->client_buckets_at = at;
    at = pad(at + (uint64_t)buckets_for(c->clients) * sizeof(uint32_t));
    s->sources_at = at;
    at = pad(at + (sources_for(c) + 1ull) * sizeof(struct source));
    s->source_buckets_at = at;
    at = pad(at + (uint64_t)buckets_for(sources_for(c)) * sizeof(uint32_t));
    s->tokens_at = at;
    at = pad(at + (uint64_t)c->queue * sizeof(uint64_t));
    s->places_at = at;
    at = pad(at + (c->places + 1ull) * sizeof(struct place));
    s->place_buckets_at = at;
    at = pad(at + (uint64_t)buckets_for(c->places) * sizeof(uint32_t));
    s->seats_at = at;
    at = pad(at + (c->slots + 1ull) * MF_SLOT_PLACES * sizeof(struct seat));
    s->wishes_at = at;
    at = pad(at + (uint64_t)c->queue * sizeof(struct wish));
    s->blocks_at = at;
    return pad(at + (blocks_for(c) + 1ull) * sizeof(struct block));
}

#if MF_REDZONE
void __asan_poison_memory_region(const volatile void *start, uint64_t bytes);

static void poison_gaps(struct mf_tasks *s)
{
    const uint64_t behind[] = {s->task_buckets_at, s->slots_at,          s->slot_owners_at,
                               s->slot_buckets_at, s->first_client * LINE, s->client_buckets_at,
                               s->sources_at,      s->source_buckets_at,   s->tokens_at,
                               s->places_at,       s->place_buckets_at,    s->seats_at,
                               s->wishes_at,       s->blocks_at};
    for (uint32_t i = 0; i < sizeof(behind) / sizeof(*behind); i++)
        __asan_poison_memory_region((uint8_t *)s + behind[i] - MF_REDZONE, MF_REDZONE);
}
#endif

uint64_t mf_tasks_size(const struct mf_tasks_config *c)
{
    struct mf_tasks layout;
    _Static_assert(sizeof(struct record) == LINE, "a task fits a cache line");
    _Static_assert(sizeof(struct slot) == LINE, "a slot fits a cache line");
    _Static_assert(offsetof(struct client, heard_ns) == LINE, "what a task needs of its client fits a cache line");
    _Static_assert(1024 % sizeof(struct block) == 0 && sizeof(struct block) % LINE == 0, "whole blocks");
    _Static_assert(sizeof(struct client) % LINE == 0, "clients begin with a cache line");
    if (c->queue < 1 || c->queue > MF_QUEUE_MAX || c->slots < 1 || c->slots > MF_EXECUTOR_SLOTS_MAX ||
        c->clients < 1 || c->clients > MF_CLIENTS_MAX || c->levels < 1 || c->levels > MF_LEVELS ||
        c->places < 1 || c->places > MF_PLACES_MAX ||
        c->arguments < MF_ARGUMENTS_MIN || c->arguments > MF_ARGUMENTS_MAX)
        return 0;
    if (c->lease_ns == 0 || c->slot_idle_ns == 0 || c->client_idle_ns == 0)
        return 0;
    /* A copied packet must not recreate its record, so the cookie expires before the record. */
    if (c->cookie_ns == 0 || c->slot_idle_ns / 2 < c->cookie_ns || c->client_idle_ns / 2 < c->cookie_ns)
        return 0;
    return lay_out(&layout, c);
}

/* Fills the tables that reduce queries about masks to a few bit operations (state.h), and empties all lists. */
static void fill_mask_tables(struct mf_tasks *s)
{
    for (uint32_t a = 0; a < GROUP; a++)
        for (uint32_t b = 0; b < GROUP; b++)
            s->subsets[a] |= (uint8_t)(((b & ~a) == 0) << b);
    for (uint32_t a = 0; a < GROUPS; a++)
        for (uint32_t b = 0; b < GROUPS; b++)
            s->groups_within[a] |= (uint32_t)((b & ~a & (MF_MUTANT(5) ? ~2u : ~0u)) == 0) << b;
    for (uint32_t a = 0; a < 64; a++)
        for (uint32_t b = 0; b < 64; b++)
            s->supersets[a] |= (uint64_t)((a & ~b & (MF_MUTANT(5) ? ~16u : ~0u)) == 0) << b;
    for (uint32_t byte = 0; byte < 256; byte++) {
        s->lowest[byte] = (uint8_t)__builtin_ctz(byte | 256);
        s->bits[byte] = (uint8_t)(byte ? 32 - __builtin_clz(byte) : 0);
    }
    for (uint32_t group = 0; group < MF_LEVELS * GROUPS; group++)
        s->oldest[group] = NO_TASK;
    for (uint32_t list = 0; list < MF_LEVELS * MASKS; list++)
        s->heads[list] = s->pairs[list / 2] = s->queued[list].second = NO_TASK;
    record_at(s, NONE)->stamp = NO_TASK;
    for (uint32_t mask = 0; mask < MASKS; mask++)
        s->sized[__builtin_popcount(mask)][mask >> 6] |= 1ull << (mask & 63);
}

/* Derives independent values from the key: an attacker that learns the salt by long measurements knows nothing about cookies and
 * generations. No cookie hashes the same message, because its last word is a time, which is never all ones. */
static void derive_keys(struct mf_tasks *s, const uint64_t key[2])
{
    s->cookie_key[0] = key[0];
    s->cookie_key[1] = key[1];
    s->generation_key[0] = siphash(key, 0, 0, 0, ~0ull);
    s->generation_key[1] = siphash(key, 1, 0, 0, ~0ull);
    s->salt = siphash(key, 2, 0, 0, ~0ull);
}

void mf_tasks_init(struct mf_tasks *s, const struct mf_tasks_config *c, uint32_t epoch, const uint64_t key[2])
{
    lay_out(s, c);
    derive_keys(s, key);
    s->epoch = mf_net32(epoch);
    s->levels = c->levels;
    s->lease_ns = c->lease_ns;
    s->slot_idle_ns = c->slot_idle_ns;
    s->client_idle_ns = c->client_idle_ns;
    s->cookie_ns = c->cookie_ns;
    /* Twice as many as the other tables: each further link of a chain costs a cache line. */
    s->task_buckets = buckets_for(4 * c->queue) - 1;
    s->slot_buckets = buckets_for(c->slots) - 1;
    s->client_buckets = buckets_for(c->clients) - 1;
    s->source_buckets = buckets_for(sources_for(c)) - 1;
    s->place_buckets = buckets_for(c->places) - 1;
    s->queue = s->room = c->queue;
    s->slots.capacity = c->slots;
    s->clients.capacity = c->clients;
    s->sources.capacity = sources_for(c);
    s->places.capacity = c->places;
    s->blocks.capacity = blocks_for(c);
    fill_mask_tables(s);
#if MF_REDZONE
    poison_gaps(s);
#endif
}

void mf_tasks_stats(const struct mf_tasks *s, struct mf_tasks_stats *stats)
{
    *stats = s->stats;
    stats->argument_blocks = s->blocks.used;
    int64_t busy = (int64_t)(stats->submitted - stats->completed - stats->cancelled - stats->dropped - stats->purged);
    for (uint32_t level = 0; level < MF_LEVELS; level++)
        busy -= stats->queued[level];
    /* In the kernel the program counts while this reads, so the numbers may not fit together. */
    stats->busy = busy < 0 ? 0 : busy > stats->slots ? stats->slots : (uint32_t)busy;
}
