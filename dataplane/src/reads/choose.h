/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Which replica gets a READ of a stable key group. */
#ifndef MIDFLIGHT_READS_CHOOSE_H
#define MIDFLIGHT_READS_CHOOSE_H

#include "state.h"

/* Bitmap of the replicas that have the key group's index, as far as is known here, and take READs. A replica that does not have it
 * after all refuses, so this is a matter of speed. */
MF_INLINE uint32_t eligible_replicas(const struct set *set, const struct kgroup *group)
{
    uint32_t eligible = 0;
    for (uint32_t slot = 0; slot < MF_REPLICAS_MAX; slot++) {
        const struct replica *replica = &set->replicas[slot];
        uint32_t has_index = (group->replicas >> slot & 1) | (replica->matched >= group->index);
        eligible |= (has_index & (replica->weight != 0)) << slot;
    }
    return eligible;
}

MF_INLINE uint32_t weight_of(const struct set *set, uint32_t eligible, uint32_t slot)
{
    return eligible >> slot & 1 ? set->replicas[slot].weight : 0;
}

/* Draws one of these replicas by lot, with chances in proportion to their weights. */
MF_INLINE uint32_t draw(struct set *set, uint32_t eligible)
{
    uint32_t total = 0, slot = 0;
    for (uint32_t i = 0; i < MF_REPLICAS_MAX; i++)
        total += weight_of(set, eligible, i);
    uint64_t lot = (mf_mix(++set->draws) >> 32) * total >> 32;
    for (uint32_t i = 0, before = 0; i < MF_REPLICAS_MAX; i++) {
        uint32_t weight = weight_of(set, eligible, i);
        slot = lot - before < weight ? i : slot;
        before += weight;
    }
    return slot;
}

/* The slot for a READ, or MF_NO_SLOT if no replica is eligible. */
MF_INLINE uint32_t choose_replica(struct set *set, const struct kgroup *group)
{
    uint32_t eligible = eligible_replicas(set, group), followers = eligible & ~(1u << set->leader);
    if (set->policy == MF_POLICY_AVOID_LEADER && set->answered_seq < set->seq && followers)
        eligible = followers;
    return MF_LIKELY(eligible) ? draw(set, eligible) : MF_NO_SLOT;
}

#endif
