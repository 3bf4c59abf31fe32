/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Which replica gets a READ of a stable key group. */
#ifndef MIDFLIGHT_READS_CHOOSE_H
#define MIDFLIGHT_READS_CHOOSE_H

#include "state.h"

/* Who may get a READ: a bitmap of replicas, and the sum of their weights. */
struct candidates {
    uint32_t slots, weight;
};

/* Whether a replica has the key group's index, as far as is known here. One that does not have it after all refuses the READ, so
 * this is a matter of speed. */
MF_INLINE uint32_t is_consistent(const struct replica *replica, const struct kgroup *group, uint32_t slot)
{
    return (group->replicas >> slot & 1) | (replica->matched >= group->index);
}

/* All consistent replicas that have a weight (where READs go to any replica, the others too), but for the one at slot `except`. */
MF_INLINE struct candidates candidates_for(const struct set *set, const struct kgroup *group, uint32_t except)
{
    struct candidates all = {MF_ZERO, MF_ZERO};
    uint32_t is_any = set->read_flags != 0;
    for (uint32_t slot = MF_ZERO; MF_LOOP(slot < set->slots && slot < MF_REPLICAS_MAX); slot++) {
        const struct replica *replica = &set->replicas[slot];
        uint32_t is_one = (is_consistent(replica, group, slot) | is_any) & (slot != except);
        all.slots |= is_one << slot;
        all.weight += replica->weight & -is_one;
    }
    return all;
}

/* Draws one by lot, with chances in proportion to the weights. No branch depends on the lot: it could not be predicted. */
MF_INLINE uint32_t draw(struct set *set, struct candidates among)
{
    uint64_t lot = (mf_mix(++set->draws) >> 32) * among.weight >> 32;
    uint32_t slot = MF_ZERO, weight_up_to = MF_ZERO;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < set->slots && i < MF_REPLICAS_MAX); i++) {
        weight_up_to += set->replicas[i].weight & -(among.slots >> i & 1);
        slot += lot >= weight_up_to;
    }
    return slot;
}

/* The slot for a READ, or MF_NO_SLOT if no replica is eligible. */
MF_INLINE uint32_t choose_replica(struct set *set, const struct kgroup *group)
{
    struct candidates among = {0, 0};
    if (set->policy & MF_POLICY_AVOID_LEADER && set->answered_seq < set->seq && !set->read_flags)
        among = candidates_for(set, group, set->leader);
    if (among.weight == 0)
        among = candidates_for(set, group, MF_NO_SLOT);
    return MF_LIKELY(among.weight) ? draw(set, among) : MF_NO_SLOT;
}

#endif
