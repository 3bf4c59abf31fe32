// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* Initialises an operator's state, also for the kernel: it holds offsets, not pointers. */
#include "cache/state.h"
#include "shared/siphash.h"

/* Gap after each table. ASan builds set it to detect an index out of bounds. */
#ifndef MF_REDZONE
#define MF_REDZONE 0
#endif

#define LINE 64ull

static uint64_t pad(uint64_t bytes)
{
    return ((bytes + LINE - 1) & ~(LINE - 1)) + MF_REDZONE;
}

/* Half of the places stay free, so that most addresses are at the position of their hash. */
static uint64_t places_of(const struct mf_cache_config *c)
{
    uint64_t places = PLACES_NEAR;
    while (places < 2ull * c->places)
        places *= 2;
    return places;
}

/* The least power of two that is at least `least`. */
static uint64_t power_of_two(uint64_t least)
{
    uint64_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}

/* Half of a hash table stays free. */
static uint64_t hashed(uint64_t most)
{
    return power_of_two(2 * most > FOUND_NEAR ? 2 * most : FOUND_NEAR);
}

/* Offset of each table, and the end of the last. */
struct plan {
    uint64_t racks, groups, rsnodes, places, servers, index, replica_groups, slots, end;
};

static struct plan plan_of(const struct mf_cache_config *c)
{
    struct plan plan;
    plan.racks = pad(sizeof(struct mf_cache));
    plan.groups = plan.racks + pad(c->racks * sizeof(struct rack));
    plan.rsnodes = plan.groups + pad(c->groups * sizeof(struct group));
    plan.places = plan.rsnodes + pad((c->rsnodes + 1ull) * sizeof(struct rsnode));
    plan.servers = plan.places + pad(places_of(c) * sizeof(struct place));
    plan.index = plan.replica_groups = plan.slots = plan.end = plan.servers;
    if (c->selection == MF_SELECT_NONE)
        return plan;
    plan.index = plan.servers + pad(c->servers * sizeof(struct chosen_server));
    plan.replica_groups = plan.index + pad(hashed(c->servers) * sizeof(uint32_t));
    plan.slots = plan.replica_groups + pad(hashed(c->replica_groups) * sizeof(struct replica_group));
    plan.end = plan.slots + pad(power_of_two(c->under_way) * sizeof(struct under_way));
    return plan;
}

#if MF_REDZONE
void __asan_poison_memory_region(const volatile void *start, uint64_t bytes);

static void poison_gaps(struct mf_cache *s, const struct plan *plan)
{
    const uint64_t ends[] = {plan->racks,   plan->groups, plan->rsnodes,        plan->places, plan->servers,
                             plan->index, plan->replica_groups, plan->slots,  plan->end};
    for (uint32_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        __asan_poison_memory_region((uint8_t *)s + ends[i] - MF_REDZONE, MF_REDZONE);
}
#endif

static int is_within(uint32_t number, uint32_t most)
{
    return number >= 1 && number <= most;
}

uint64_t mf_cache_size(const struct mf_cache_config *c)
{
    if (!is_within(c->places, MF_PLACES_MAX) || !is_within(c->racks, MF_RACKS_MAX) ||
        !is_within(c->groups, MF_GROUPS_MAX) || !is_within(c->rsnodes, MF_RSNODES_MAX))
        return 0;
    if (c->masks[0] != 0 || c->cookie_ns == 0 || c->selection >= MF_SELECT_END)
        return 0;
    if (!is_within(c->servers, MF_SERVERS_MAX) || !is_within(c->replica_groups, MF_REPLICA_GROUPS_MAX) ||
        !is_within(c->under_way, MF_UNDER_WAY_MAX) || c->expire_ns == 0)
        return 0;
    return plan_of(c).end;
}

/* Puts all slots into the free list, in order. `generation`: first one to hand out. */
static void free_all_slots(struct mf_cache *s, uint32_t generation)
{
    struct selection *selection = &s->selection;
    for (uint32_t i = 0; i < selection->slots; i++) {
        struct under_way *slot = (struct under_way *)((uint8_t *)s + selection->slots_at) + i;
        slot->retained = (uint16_t)(generation << selection->slot_bits % 16);
        slot->after = i + 1 < selection->slots ? i + 1 : NO_SLOT;
    }
    selection->free = 0;
    selection->free_last = selection->slots - 1;
    selection->oldest = selection->newest = NO_SLOT;
}

static void init_selection(struct mf_cache *s, const struct mf_cache_config *c, const struct plan *plan,
                           const uint64_t key[2])
{
    struct selection *selection = &s->selection;
    if (c->selection == MF_SELECT_NONE)
        return;
    selection->kind = c->selection;
    selection->selectors = 1;
    selection->random = siphash(key, 3, 0, 0, 0);
    selection->expire_ns = c->expire_ns;
    selection->servers_at = plan->servers;
    selection->index_at = plan->index;
    selection->groups_at = plan->replica_groups;
    selection->slots_at = plan->slots;
    selection->servers_max = c->servers;
    selection->index_mask = (uint32_t)hashed(c->servers) - 1;
    selection->groups_mask = (uint32_t)hashed(c->replica_groups) - 1;
    selection->groups_max = c->replica_groups;
    selection->slots = (uint32_t)power_of_two(c->under_way);
    selection->slot_bits = mf_lowest_bit(selection->slots);
    free_all_slots(s, (uint32_t)siphash(key, 4, 0, 0, 0));
}

void mf_cache_init(struct mf_cache *s, const struct mf_cache_config *c, uint32_t epoch, const uint64_t key[2])
{
    const struct plan plan = plan_of(c);
    (void)epoch;
    for (uint32_t i = 0; i < 2; i++) {
        s->cookie_key[i] = key[i];
        s->place_key[i] = siphash(key, 1 + i, 0, 0, 0); /* of cookies, whose first word is 0; 3 and 4 belong to the selection */
    }
    s->cookie_ns = c->cookie_ns;
    s->racks_at = plan.racks;
    s->groups_at = plan.groups;
    s->rsnodes_at = plan.rsnodes;
    s->places_at = plan.places;
    s->racks = c->racks;
    s->groups = c->groups;
    s->rsnodes = c->rsnodes;
    s->place_mask = (uint32_t)places_of(c) - 1;
    s->places_max = c->places;
    s->rack = MF_NO_RACK;
    for (uint32_t i = 0; i < MF_TIERS_MAX; i++)
        s->masks[i] = mf_net32(c->masks[i]);
    init_selection(s, c, &plan, key);
#if MF_REDZONE
    poison_gaps(s, &plan);
#endif
}

void mf_cache_stats(const struct mf_cache *s, struct mf_cache_stats *stats)
{
    *stats = s->stats;
}

void mf_cache_counts(const struct mf_cache *s, uint32_t group, uint64_t counts[MF_TIERS_MAX])
{
    /* The cast drops `const` for the engine's accessors; nothing is written. */
    for (uint32_t i = 0; i < MF_TIERS_MAX; i++)
        counts[i] = group < s->groups ? group_at((struct mf_cache *)s, group)->counts[i] : 0;
}
