/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Forwards WRITE_REPLY and READ_REPLY to the client. */
#ifndef MIDFLIGHT_STORE_FROM_REPLICA_H
#define MIDFLIGHT_STORE_FROM_REPLICA_H

#include "from_client.h"

/* Whether a reply comes from the replica that it names, in this incarnation of the set. */
MF_INLINE mf_verdict check_replica(const struct set *set, const struct call *call)
{
    const struct mf_request *request = request_in(call);
    uint32_t slot = request->slot;
    if (MF_UNLIKELY(slot >= MF_REPLICAS_MAX || set->replicas[slot].address.port == 0 ||
                    !mf_address_equal(&set->replicas[slot].address, &call->in->from)))
        return MF_V_FOREIGN_REPLICA;
    return MF_UNLIKELY(request->header.epoch != set->epoch) ? MF_V_FOREIGN_EPOCH : MF_V_OK;
}

/* The closing rule: the reply to the group's last WRITE names the replicas that have it. After NOT_LEADER and REORDERED the WRITE may still
 * be in flight. */
MF_INLINE void close_kgroup(struct mf_store *s, struct set *set, const struct mf_request *reply)
{
    uint64_t seq = mf_net64(reply->seq), index = mf_net64(reply->index);
    if (seq > set->answered_seq && seq <= set->seq)
        set->answered_seq = seq;
    if (reply->status == MF_STATUS_NOT_LEADER || (reply->status == MF_STATUS_REORDERED && !MF_MUTANT(106)))
        return;
    struct kgroup *group = kgroup_of(s, set, mf_net32(reply->hash));
    if (group->seq != seq || (index < group->index && !MF_MUTANT(101)))
        return;
    group->index = index;
    group->replicas = reply->replicas;
    set->stats.unstable -= !group->is_stable;
    group->is_stable = 1;
    set->stats.closed++;
}

MF_HANDLER mf_verdict handle_write_reply(struct mf_store *s, const struct call *call)
{
    const struct mf_request *reply = request_in(call);
    mf_verdict verdict = check_request(call->in, sizeof(*reply), 0, MF_PACKET_MAX);
    if (verdict != MF_V_OK)
        return verdict;
    if (reply->status >= MF_STATUS_END)
        return MF_V_BAD_STATUS;
    struct set *set = find_set(s, mf_net16(reply->set));
    if (set == 0)
        return MF_V_UNKNOWN_SET;
    verdict = check_replica(set, call);
    if (verdict != MF_V_OK)
        return verdict;
    if (is_present(set, call->now_ns, mf_net64(reply->sid)) || MF_MUTANT(101))
        close_kgroup(s, set, reply);
    /* A REFRESH has no client. */
    return reply->client.port ? to_client(call, set) : MF_V_OK;
}

/* A reply to a READ that only the leader may answer. After the end of its session, another leader may have taken writes. It is never turned
 * back, which prevents loops. */
MF_INLINE mf_verdict pass_reply_of_leader(const struct call *call, struct set *set)
{
    const struct mf_request *reply = request_in(call);
    if (is_present(set, call->now_ns, mf_net64(reply->sid)) && reply->status != MF_STATUS_BEHIND)
        return to_client(call, set);
    set->stats.outdated++;
    return to_client_without_value(call, set, is_active(set, call->now_ns) ? MF_STATUS_NOT_LEADER : MF_STATUS_INACTIVE);
}

/* Whether a follower's reply goes to the client. If the READ went to any replica, the replica decides itself. For a stable key group, the
 * strict check is FLAIR's; the other modes rely on the state when the READ passed. So neither an active session nor the time is needed. */
MF_INLINE int is_good(struct mf_store *s, struct set *set, const struct call *call)
{
    const struct mf_request *reply = request_in(call);
    if (reply->status == MF_STATUS_BEHIND)
        return 0;
    if (set->reply_check != MF_REPLY_STRICT || reply->flags & MF_FLAG_ANY_REPLICA)
        return 1;
    if (set->sid != mf_net64(reply->sid))
        return 0;
    return reply->slot == set->leader || kgroup_of(s, set, mf_net32(reply->hash))->seq == mf_net64(reply->seq);
}

/* Turns a reply back into its READ, for the leader: cuts off the value after the key. */
MF_INLINE mf_verdict turn_back(struct mf_store *s, struct set *set, const struct call *call)
{
    struct mf_request *reply = request_in(call);
    if (!is_active(set, MF_TIME_AFTER_ALL(call))) {
        set->stats.outdated++;
        return to_client_without_value(call, set, MF_STATUS_INACTIVE);
    }
    set->stats.turned_back++;
    reply->header.operation = MF_OP_READ;
    mf_verdict verdict = ask_leader(call, set, kgroup_of(s, set, mf_net32(reply->hash)));
    call->out->forward.length = (uint32_t)sizeof(*reply) + mf_net16(reply->key_length);
    return verdict;
}

MF_FREQUENT_HANDLER mf_verdict handle_read_reply(struct mf_store *s, const struct call *call)
{
    const struct mf_request *reply = request_in(call);
    mf_verdict verdict = check_request(call->in, sizeof(*reply), MF_KEY_MAX, MF_PACKET_MAX);
    if (verdict != MF_V_OK)
        return verdict;
    if (reply->status >= MF_STATUS_END)
        return MF_V_BAD_STATUS;
    struct set *set = find_set(s, mf_net16(reply->set));
    if (set == 0)
        return MF_V_UNKNOWN_SET;
    verdict = check_replica(set, call);
    if (verdict != MF_V_OK)
        return verdict;
    if (reply->client.port == 0)
        return MF_V_NO_CLIENT;
    uint32_t is_counted = set->sid == mf_net64(reply->sid) && !(reply->flags & MF_FLAG_DIRECT);
    set->answered[reply->slot % MF_REPLICAS_MAX] += is_counted;
    if (reply->flags & MF_FLAG_LEADER_ONLY)
        return pass_reply_of_leader(call, set);
    return is_good(s, set, call) ? to_client(call, set) : turn_back(s, set, call);
}

#endif
