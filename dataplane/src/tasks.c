// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The soft engine of the tasks program: set-up, the way of a datagram to its handler, and time.
 *
 *   tasks/state.h          what is kept
 *   tasks/index.h          hash chains: clients, slots and tasks by name
 *   tasks/pools.h          free elements
 *   tasks/queue.h          the queue: lists per level and mask, oldest first
 *   tasks/parking.h        slots that wait
 *   tasks/assign.h         tasks meet slots
 *   tasks/reply.h          datagrams out
 *   tasks/from_client.h    SUBMIT, CANCEL, PROBE
 *   tasks/from_executor.h  REGISTER, RETRIEVE, KEEPALIVE, RELEASE
 */
#include "midflight/tasks.h"

#include "tasks/from_client.h"
#include "tasks/from_executor.h"

/* Bytes between the arrays. Builds for ASan set it: an index that runs out of its array then falls into a gap. */
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

/* Sets the offsets of the arrays and returns the size of all. Element 0 is never used. */
static uint64_t lay_out(struct mf_tasks *s, const struct mf_tasks_config *c)
{
    uint64_t at = pad(RECORDS_AT + (c->queue + 1ull) * sizeof(struct record));
    s->task_buckets_at = at;
    at = pad(at + (uint64_t)buckets_for(2 * c->queue) * sizeof(uint32_t));
    s->slots_at = at;
    at = pad(at + (c->slots + 1ull) * sizeof(struct slot));
    s->slot_owners_at = at;
    at = pad(at + (c->slots + 1ull) * sizeof(struct slot_owner));
    s->slot_buckets_at = at;
    at = pad(at + (uint64_t)buckets_for(c->slots) * sizeof(uint32_t));
    s->clients_at = at;
    at = pad(at + (c->clients + 1ull) * sizeof(struct client));
    s->windows_at = at;
    at = pad(at + (c->clients + 1ull) * sizeof(struct window));
    s->client_buckets_at = at;
    return pad(at + (uint64_t)buckets_for(c->clients) * sizeof(uint32_t));
}

#if MF_REDZONE
void __asan_poison_memory_region(const volatile void *start, uint64_t bytes);

static void poison_gaps(struct mf_tasks *s)
{
    const uint64_t behind[] = {s->task_buckets_at, s->slots_at,  s->slot_owners_at,
                               s->slot_buckets_at, s->clients_at,      s->windows_at, s->client_buckets_at};
    for (uint32_t i = 0; i < sizeof(behind) / sizeof(*behind); i++)
        __asan_poison_memory_region((uint8_t *)s + behind[i] - MF_REDZONE, MF_REDZONE);
}
#endif

uint64_t mf_tasks_size(const struct mf_tasks_config *c)
{
    struct mf_tasks layout;
    _Static_assert(sizeof(struct record) == 64, "a task fits a cache line");
    _Static_assert(sizeof(struct slot) == 64, "a slot fits a cache line");
    _Static_assert(sizeof(struct client) == 64, "a client fits a cache line");
    if (c->queue < 1 || c->queue > MF_QUEUE_MAX || c->slots < 1 || c->slots > MF_EXECUTOR_SLOTS_MAX ||
        c->clients < 1 || c->clients > MF_CLIENTS_MAX || c->levels < 1 || c->levels > MF_LEVELS)
        return 0;
    return lay_out(&layout, c);
}

/* The tables that turn questions about masks into a few bit operations (state.h), and empty lists. */
static void fill_mask_tables(struct mf_tasks *s)
{
    for (uint32_t a = 0; a < GROUP; a++)
        for (uint32_t b = 0; b < GROUP; b++)
            s->subsets[a] |= (uint8_t)(((b & ~a) == 0) << b);
    for (uint32_t a = 0; a < GROUPS; a++)
        for (uint32_t b = 0; b < GROUPS; b++)
            s->groups_within[a] |= (uint32_t)((b & ~a) == 0) << b;
    for (uint32_t a = 0; a < 64; a++)
        for (uint32_t b = 0; b < 64; b++)
            s->supersets[a] |= (uint64_t)((a & ~b) == 0) << b;
    for (uint32_t level = 0; level < MF_LEVELS; level++)
        for (uint32_t mask = 0; mask < MASKS; mask++)
            s->heads[level][mask] = s->seconds[level][mask] = NO_TASK;
    for (uint32_t mask = 0; mask < MASKS; mask++)
        s->sized[__builtin_popcount(mask)][mask >> 6] |= 1ull << (mask & 63);
}

void mf_tasks_init(struct mf_tasks *s, const struct mf_tasks_config *c, uint32_t epoch, uint64_t secret)
{
    lay_out(s, c);
    s->epoch = mf_net32(epoch);
    s->levels = c->levels;
    s->secret = secret;
    s->lease_ns = c->lease_ns;
    s->slot_idle_ns = c->slot_idle_ns;
    s->client_idle_ns = c->client_idle_ns;
    s->task_buckets = buckets_for(2 * c->queue) - 1; /* twice as many: a neighbour in a chain is another cache line */
    s->slot_buckets = buckets_for(c->slots) - 1;
    s->client_buckets = buckets_for(c->clients) - 1;
    s->records.capacity = c->queue;
    s->slots.capacity = c->slots;
    s->clients.capacity = c->clients;
    fill_mask_tables(s);
#if MF_REDZONE
    poison_gaps(s);
#endif
}

/* Reads the header of a datagram. */
MF_INLINE enum mf_verdict check_header(const uint8_t *data, uint32_t length, uint32_t *operation)
{
    const struct mf_header *header = (const struct mf_header *)data;
    if (MF_UNLIKELY(length < sizeof(*header)))
        return MF_V_TRUNCATED;
    *operation = header->operation;
    if (MF_UNLIKELY(header->magic != mf_net16(MF_MAGIC)))
        return MF_V_BAD_MAGIC;
    if (MF_UNLIKELY(header->version != MF_VERSION))
        return MF_V_BAD_VERSION;
    if (MF_UNLIKELY(*operation - 1 >= MF_OP_END - 1))
        return MF_V_UNKNOWN_OPERATION;
    return MF_V_OK;
}

/* The most frequent operations come first. */
MF_INLINE enum mf_verdict handle(struct mf_tasks *s, struct call *call, uint32_t operation)
{
    if (operation == MF_OP_RETRIEVE)
        return handle_retrieve(s, call);
    if (operation == MF_OP_SUBMIT)
        return handle_submit(s, call);
    switch (operation) {
    case MF_OP_KEEPALIVE:
        return handle_keepalive(s, call);
    case MF_OP_PROBE:
        return handle_probe(s, call);
    case MF_OP_REGISTER:
        return handle_register(s, call);
    case MF_OP_RELEASE:
        return handle_release(s, call);
    case MF_OP_CANCEL:
        return handle_cancel(s, call);
    default:
        return MF_V_NOT_FOR_SWITCH;
    }
}

enum mf_verdict mf_tasks_packet(struct mf_tasks *s, uint64_t now_ns, const struct mf_datagram *in, struct mf_out *out)
{
    uint32_t operation = 0;
    enum mf_verdict verdict = check_header(in->data, in->length, &operation);
    out->count = 0;
    if (MF_LIKELY(verdict == MF_V_OK)) {
        struct call call = {now_ns, in, out};
        s->stats.packets[operation]++;
        verdict = handle(s, &call, operation);
    }
    count(s, verdict);
    return verdict;
}

/* Takes from one slot what its silence has cost it. */
static void expire(struct mf_tasks *s, uint64_t now_ns, uint32_t i, struct mf_out *out)
{
    struct slot *slot = slot_at(s, i);
    uint64_t silent_ns = now_ns > slot->heard_ns ? now_ns - slot->heard_ns : 0;
    if (slot->state == SLOT_ASSIGNED && silent_ns >= s->lease_ns) {
        slot->spent = 1;
        s->stats.expired++;
        requeue(s, out, now_ns, take_from_slot(s, slot));
    } else if (slot->state == SLOT_WAITING && silent_ns >= s->lease_ns / 2) {
        unpark(s, i);
    } else if (slot->state == SLOT_FREE && silent_ns >= s->slot_idle_ns) {
        vacate(s, i);
    }
}

uint32_t mf_tasks_tick(struct mf_tasks *s, uint64_t now_ns, struct mf_out *out)
{
    uint32_t looked = 0;
    out->count = 0;
    while (looked < MF_TICK_SLOTS && looked < s->slots.fresh && out->count < MF_OUT_MAX) {
        s->tick_cursor = s->tick_cursor < s->slots.fresh ? s->tick_cursor + 1 : 1;
        expire(s, now_ns, s->tick_cursor, out);
        looked++;
    }
    return looked;
}

const struct mf_tasks_stats *mf_tasks_stats(const struct mf_tasks *s)
{
    return &s->stats;
}
