/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Which replica gets a READ of a stable key group. */
#ifndef MIDFLIGHT_READS_CHOOSE_H
#define MIDFLIGHT_READS_CHOOSE_H

#include "state.h"

/* Sums of weights: of the replica at a slot and all before it. Who may not get the READ counts 0. */
struct shares {
    uint32_t up_to[MF_REPLICAS_MAX];
};

/* Whether a replica has the key group's index, as far as is known here. One that does not have it after all refuses the READ, so
 * this is a matter of speed. */
MF_INLINE uint32_t is_consistent(const struct replica *replica, const struct kgroup *group, uint32_t slot)
{
    return (group->replicas >> slot & 1) | (replica->matched >= group->index);
}

/* Adds up the weights of all consistent replicas but the one at slot `except`. Returns their sum. */
MF_INLINE uint32_t add_weights(const struct set *set, const struct kgroup *group, uint32_t except, struct shares *shares)
{
    uint32_t total = 0;
    for (uint32_t slot = MF_ZERO; MF_LOOP(slot < set->slots && slot < MF_REPLICAS_MAX); slot++) {
        const struct replica *replica = &set->replicas[slot];
        total += replica->weight & -(is_consistent(replica, group, slot) & (slot != except));
        shares->up_to[slot] = total;
    }
    return total;
}

/* Draws one by lot, with chances in proportion to the weights. No branch depends on the lot: it could not be predicted. */
MF_INLINE uint32_t draw(struct set *set, const struct shares *shares, uint32_t total)
{
    uint64_t lot = (mf_mix(++set->draws) >> 32) * total >> 32;
    uint32_t slot = 0;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < set->slots && i < MF_REPLICAS_MAX); i++)
        slot += lot >= shares->up_to[i];
    return slot;
}

/* The slot for a READ, or MF_NO_SLOT if no replica is eligible. */
MF_INLINE uint32_t choose_replica(struct set *set, const struct kgroup *group)
{
    struct shares shares;
    uint32_t total = 0;
    if (set->policy == MF_POLICY_AVOID_LEADER && set->answered_seq < set->seq)
        total = add_weights(set, group, set->leader, &shares);
    if (total == 0)
        total = add_weights(set, group, MF_NO_SLOT, &shares);
    return MF_LIKELY(total) ? draw(set, &shares, total) : MF_NO_SLOT;
}

#endif
