// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The survey: sessions and replicas of each set. In the kernel the state may change during the copy, so nothing here follows an index that
 * it reads. Not built for the kernel.
 */
#include "store/state.h"

static void survey_replica(const struct set *set, uint32_t slot, struct mf_surveyed_replica *to)
{
    const struct replica *replica = &set->replicas[slot];
    to->heard_ns = set->echoes[slot];
    to->matched = replica->matched;
    to->sent = set->sent[slot];
    to->answered = set->answered[slot];
    to->is_taken = replica->address.port != 0;
    to->address = to->is_taken ? replica->address : set->named[slot];
    to->weight = replica->weight;
    /* A leader sends no HELLO: its HEARTBEATs extend the lease. */
    if (set->lease_ends_ns > set->lease_ns && slot == set->leader && set->lease_ends_ns - set->lease_ns > to->heard_ns)
        to->heard_ns = set->lease_ends_ns - set->lease_ns;
}

int mf_store_survey(const struct mf_store *store, uint32_t place, struct mf_surveyed_set *found)
{
    const struct set *set = &store->sets[place % MF_SETS_MAX];
    uint64_t seq = set->seq, answered = set->answered_seq;
    if (set->incarnation == 0)
        return 0;
    found->sid = set->sid;
    found->lease_ends_ns = set->lease_ends_ns;
    found->lease_ns = set->lease_ns;
    found->under_way = seq > answered ? seq - answered : 0;
    found->number = set->number;
    found->leader = set->leader;
    found->any_replica = set->read_flags != 0;
    found->policy = set->policy;
    found->reply_check = set->reply_check;
    found->reserved = 0;
    for (uint32_t slot = 0; slot < MF_REPLICAS_MAX; slot++)
        survey_replica(set, slot, &found->replicas[slot]);
    return 1;
}
