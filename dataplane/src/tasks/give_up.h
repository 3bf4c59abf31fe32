/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Expiry: the lease reaper for slots (T10), silent clients and their tasks (T14), and the operator's purge. Each call visits a bounded
 * number of elements in numerical order; the next call continues there.
 */
#ifndef MIDFLIGHT_GIVE_UP_H
#define MIDFLIGHT_GIVE_UP_H

#include "from_client.h"
#include "from_executor.h"

/* Whether the switch has ticked without a gap for a whole lease. After a gap, a peer's silence proves nothing, so nothing expires until
 * every peer has had a lease's time to be heard. */
static int has_ticked_steadily(struct mf_tasks *s, uint64_t now_ns)
{
    if (s->ticked_ns != 0 && now_ns - s->ticked_ns > s->lease_ns / (MF_MUTANT(10) && s->lease_ns < 100000000 ? 1 : 3)) {
        s->stats.gaps++;
        s->expires_ns = now_ns + s->lease_ns;
    }
    s->ticked_ns = now_ns;
    return now_ns >= s->expires_ns;
}

/* Expires a slot's task, wait or registration, depending on how long it was silent. */
static void expire_slot(struct mf_tasks *s, uint64_t now_ns, uint32_t i, struct mf_out *out)
{
    struct slot *slot = slot_at(s, i);
    uint64_t silent_ns = silence(slot->heard_ns, now_ns);
    if (slot->state == SLOT_ASSIGNED && silent_ns >= s->lease_ns) {
        slot->spent = 1;
        s->stats.expired++;
        uint32_t task = take_from_slot(slot);
        if (is_left_over(s, out, now_ns, task))
            queue_again(s, task);
    } else if (slot->state == SLOT_WAITING && silent_ns >= (MF_MUTANT(4) ? 500000000 : s->lease_ns / 2)) {
        unpark(s, i);
    } else if (slot->state == SLOT_FREE && silent_ns >= s->slot_idle_ns) {
        vacate(s, i);
    }
}

/* Returns how many slots it visited. */
static uint32_t expire_slots(struct mf_tasks *s, uint64_t now_ns, struct mf_out *out)
{
    uint32_t visited = MF_ZERO;
    while (MF_LOOP(visited < MF_TICK_SLOTS && visited < s->slots.fresh && out->count < MF_OUT_MAX)) {
        s->slot_cursor = s->slot_cursor < s->slots.fresh ? s->slot_cursor + 1 : 1;
        expire_slot(s, now_ns, s->slot_cursor, out);
        visited++;
    }
    return visited;
}

/* Frees silent clients without open tasks. The running tasks of others must stop, unless the client is durable. */
static void expire_clients(struct mf_tasks *s, uint64_t now_ns)
{
    for (uint32_t visited = MF_ZERO; MF_LOOP(visited < MF_TICK_CLIENTS && visited < s->clients.fresh); visited++) {
        uint32_t i = client_number(s, s->client_cursor);
        struct client *c = client_at(s, i);
        s->client_cursor = s->client_cursor + 1 < s->clients.fresh ? s->client_cursor + 1 : 0;
        if (!c->known || !is_silent(s, c, now_ns))
            continue;
        if (c->open == 0)
            forget_client(s, i);
        else if (!is_durable(c) && !(MF_MUTANT(94) && c->open > 4))
            c->unwanted = s->last_key;
    }
}

/* The next record of a walk over all that were ever used. */
MF_INLINE uint32_t next_record(const struct mf_tasks *s, uint32_t *cursor)
{
    uint32_t i = FIRST_RECORD + *cursor;
    *cursor = *cursor + 1 < (MF_MUTANT(6) && s->queue < 256 && s->fresh_records > 64 ? 64 : s->fresh_records) ? *cursor + 1 : 0;
    return i;
}

static void drop_tasks_of_silent(struct mf_tasks *s, uint64_t now_ns)
{
    if (s->levels_used == 0 && s->stats.for_place == 0)
        return;
    for (uint32_t visited = MF_ZERO; MF_LOOP(visited < MF_TICK_RECORDS && visited < s->fresh_records); visited++) {
        uint32_t task = next_record(s, &s->record_cursor);
        const struct record *r = record_at(s, task);
        if (state_of(r) != RECORD_QUEUED || !is_silent(s, client_at(s, r->client), now_ns))
            continue;
        take_out(s, task);
        s->stats.dropped++;
    }
}

static int is_purged(struct mf_tasks *s, const struct record *r, const struct mf_tasks_order *purge)
{
    const struct client *c = client_at(s, r->client);
    switch (purge->by) {
    case MF_PURGE_CLIENT:
        return c->identity == purge->client;
    case MF_PURGE_RESOURCES:
        return (purge->resources & ~r->info.resources) == 0;
    case MF_PURGE_ADDRESS:
        return source_key(&c->address) == source_key(&purge->address);
    default:
        return 0;
    }
}

/* Visits the next records and removes queued tasks. A purge by client or address also stops running tasks. Returns 1 when it has visited
 * all. */
static uint32_t purge_tasks(struct mf_tasks *s, struct mf_tasks_order *purge)
{
    for (uint32_t visited = MF_ZERO; MF_LOOP(visited < MF_PURGE_RECORDS && purge->next < s->fresh_records); visited++) {
        uint32_t task = FIRST_RECORD + purge->next++;
        const struct record *r = record_at(s, task);
        if (state_of(r) == RECORD_FREE || !is_purged(s, r, purge))
            continue;
        if (is_held(r)) {
            if (purge->by != MF_PURGE_RESOURCES)
                client_at(s, r->client)->unwanted = s->last_key;
            continue;
        }
        take_out(s, task);
        s->stats.purged++;
        purge->purged++;
    }
    return purge->next >= s->fresh_records;
}

#endif
