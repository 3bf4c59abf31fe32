/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Chooses the replica for a READ of a stable key group. */
#ifndef MIDFLIGHT_STORE_CHOOSE_H
#define MIDFLIGHT_STORE_CHOOSE_H

#include "state.h"

/* Candidates for a READ: a bitmap of slots, and the sum of their weights. */
struct candidates {
    uint32_t slots, weight;
};

/* Whether a replica has the key group's index, as far as this switch knows. A replica that lacks it refuses the READ, so an error costs
 * only time. */
MF_INLINE uint32_t is_consistent(const struct replica *replica, const struct kgroup *group, uint32_t slot)
{
    return (group->replicas >> slot & 1) | (replica->matched >= group->index);
}

/* All consistent replicas with a weight; if READs go to any replica, the others too. Usually these are all with a weight, which two
 * comparisons show. */
MF_INLINE struct candidates candidates_for(const struct set *set, const struct kgroup *group)
{
    struct candidates all = {UINT32_MAX, set->weight};
    if (MF_LIKELY(group->index <= set->matched || set->read_flags))
        return all;
    all.slots = all.weight = MF_ZERO;
    for (uint32_t slot = MF_ZERO; MF_LOOP(slot < set->slots && slot < MF_REPLICAS_MAX); slot++) {
        const struct replica *replica = &set->replicas[slot];
        uint32_t is_one = is_consistent(replica, group, slot);
        all.slots |= is_one << slot;
        all.weight += replica->weight & -is_one;
    }
    return all;
}

MF_INLINE struct candidates without_leader(const struct set *set, struct candidates all)
{
    uint32_t leader = set->leader % MF_REPLICAS_MAX, is_one = all.slots >> leader & 1;
    all.weight -= set->replicas[leader].weight & -is_one;
    all.slots &= ~(1u << leader);
    return all;
}

/* 1 if two slots are equal, else 0, by arithmetic: BPF cannot set a register by a comparison, so the compiler would emit a branch. */
MF_INLINE uint32_t is_same_slot(uint32_t a, uint32_t b)
{
    return ((a ^ b) - 1) >> 31;
}

/* Draws a replica at random, in proportion to the weights. No branch depends on the random number: it would be mispredicted. */
MF_INLINE uint32_t draw(struct set *set, struct candidates among)
{
    uint64_t lot = (mf_mix(++set->draws) >> 32) * among.weight >> 32;
    uint64_t weight_up_to = MF_ZERO;
    uint32_t slot = MF_ZERO;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < set->slots && i < MF_REPLICAS_MAX); i++) {
        weight_up_to += set->replicas[i].weight & -(among.slots >> i & 1);
        slot += (uint32_t)((weight_up_to - 1 - lot) >> 63); /* 1 if lot >= weight_up_to */
    }
    return slot;
}

/* The slot for a READ, or MF_NO_SLOT if no replica is eligible. */
MF_INLINE uint32_t choose_replica(struct set *set, const struct kgroup *group)
{
    struct candidates among = candidates_for(set, group);
    if (set->policy & MF_POLICY_AVOID_LEADER && set->answered_seq < set->seq && !set->read_flags) {
        struct candidates others = without_leader(set, among);
        if (others.weight)
            among = others;
    }
    return MF_LIKELY(among.weight) ? draw(set, among) : MF_NO_SLOT;
}

#endif
