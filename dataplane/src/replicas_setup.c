// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * Initialises the memory of an operator. User space does it for the kernel too: the state holds offsets, no pointers.
 */
#include "replicas/state.h"
#include "shared/siphash.h"

/* Bytes behind each table. Builds for ASan set it: an index beyond one then hits a gap, which ASan reports. */
#ifndef MF_REDZONE
#define MF_REDZONE 0
#endif

#define LINE 64ull

static uint64_t pad(uint64_t bytes)
{
    return ((bytes + LINE - 1) & ~(LINE - 1)) + MF_REDZONE;
}

/* Half of the places stay free, so that most addresses are found where their hash points. */
static uint64_t places_of(const struct mf_replicas_config *c)
{
    uint64_t places = PLACES_NEAR;
    while (places < 2ull * c->places)
        places *= 2;
    return places;
}

/* Where each table begins, and, last, where they end. */
struct plan {
    uint64_t racks, groups, rsnodes, places, end;
};

static struct plan plan_of(const struct mf_replicas_config *c)
{
    struct plan plan;
    plan.racks = pad(sizeof(struct mf_replicas));
    plan.groups = plan.racks + pad(c->racks * sizeof(struct rack));
    plan.rsnodes = plan.groups + pad(c->groups * sizeof(struct group));
    plan.places = plan.rsnodes + pad((c->rsnodes + 1ull) * sizeof(struct rsnode));
    plan.end = plan.places + pad(places_of(c) * sizeof(struct place));
    return plan;
}

#if MF_REDZONE
void __asan_poison_memory_region(const volatile void *start, uint64_t bytes);

static void poison_gaps(struct mf_replicas *s, const struct plan *plan)
{
    const uint64_t ends[] = {plan->racks, plan->groups, plan->rsnodes, plan->places, plan->end};
    for (uint32_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        __asan_poison_memory_region((uint8_t *)s + ends[i] - MF_REDZONE, MF_REDZONE);
}
#endif

static int is_within(uint32_t number, uint32_t most)
{
    return number >= 1 && number <= most;
}

uint64_t mf_replicas_size(const struct mf_replicas_config *c)
{
    if (!is_within(c->places, MF_PLACES_MAX) || !is_within(c->racks, MF_RACKS_MAX) ||
        !is_within(c->groups, MF_GROUPS_MAX) || !is_within(c->rsnodes, MF_RSNODES_MAX))
        return 0;
    if (c->masks[0] != 0 || c->cookie_ns == 0)
        return 0;
    return plan_of(c).end;
}

void mf_replicas_init(struct mf_replicas *s, const struct mf_replicas_config *c, uint32_t epoch, const uint64_t key[2])
{
    const struct plan plan = plan_of(c);
    (void)epoch;
    for (uint32_t i = 0; i < 2; i++) {
        s->cookie_key[i] = key[i];
        s->place_key[i] = siphash(key, 1 + i, 0, 0, 0); /* of cookies, the first word is 0 */
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
#if MF_REDZONE
    poison_gaps(s, &plan);
#endif
}

void mf_replicas_stats(const struct mf_replicas *s, struct mf_replicas_stats *stats)
{
    *stats = s->stats;
}

void mf_replicas_counts(const struct mf_replicas *s, uint32_t group, uint64_t counts[MF_TIERS_MAX])
{
    /* The cast drops `const`, because the accessors are the engine's, which writes through them; nothing is written here. */
    for (uint32_t i = 0; i < MF_TIERS_MAX; i++)
        counts[i] = group < s->groups ? group_at((struct mf_replicas *)s, group)->counts[i] : 0;
}
