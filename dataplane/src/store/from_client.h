/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* READ and WRITE: adds the state of the key group to the request and forwards it to a replica. */
#ifndef MIDFLIGHT_STORE_FROM_CLIENT_H
#define MIDFLIGHT_STORE_FROM_CLIENT_H

#include "choose.h"
#include "reply.h"

/* Whether a datagram has room for `fixed` bytes, its key of at most `longest` bytes, and at most `most` bytes after that. */
MF_INLINE mf_verdict check_request(const struct mf_datagram *in, uint32_t fixed, uint32_t longest, uint32_t most)
{
    const struct mf_request *request = (const struct mf_request *)in->data;
    if (MF_UNLIKELY(request->header.count != 0))
        return MF_V_BAD_COUNT;
    if (MF_UNLIKELY(in->length < fixed))
        return MF_V_TRUNCATED;
    uint32_t key = mf_net16(request->key_length), behind = in->length - fixed;
    if (MF_UNLIKELY(key > longest))
        return MF_V_BAD_KEY;
    if (MF_UNLIKELY(behind < key))
        return MF_V_TRUNCATED;
    return MF_UNLIKELY(behind - key > most) ? MF_V_TRAILING : MF_V_OK;
}

MF_INLINE mf_verdict ask_leader(const struct call *call, struct set *set, const struct kgroup *group)
{
    set->sent[set->leader]++;
    return to_replica(call, set, group, set->leader, MF_FLAG_LEADER_ONLY);
}

/* MF_FLAG_DIRECT if a replica may send its reply directly to the client, else 0. READs that probe their replica are answered through the
 * switch, to show that the replica is reachable. */
MF_INLINE uint32_t direct_flag(const struct call *call, struct set *set, uint32_t slot)
{
    uint32_t shift = 8 * (slot % MF_REPLICAS_MAX);
    if (MF_LIKELY(set->reply_check != MF_REPLY_DIRECT) || !(request_in(call)->flags & MF_FLAG_DIRECT))
        return 0;
    if (set->probes >> shift & 0xff) {
        set->probes -= 1ull << shift;
        return 0;
    }
    set->stats.direct++;
    return MF_FLAG_DIRECT;
}

MF_INLINE mf_verdict pass_read(const struct call *call, struct set *set, const struct kgroup *group)
{
    uint32_t is_direct = MF_MUTANT(107) && set->reply_check == MF_REPLY_DIRECT;
    uint32_t slot = MF_LIKELY(group->is_stable | set->read_flags | is_direct) ? choose_replica(set, group) : MF_NO_SLOT;
    if (MF_UNLIKELY(slot == MF_NO_SLOT)) {
        set->stats.leader_only++;
        return ask_leader(call, set, group);
    }
    uint64_t is_leader = is_same_slot(slot, set->leader);
    set->stats.to_leader += is_leader;
    set->stats.to_followers += 1 - is_leader;
    uint32_t direct = direct_flag(call, set, slot);
    set->sent[slot] += !direct;
    return to_replica(call, set, group, slot, set->read_flags | direct);
}

MF_INLINE mf_verdict pass_write(const struct call *call, struct set *set, struct kgroup *group)
{
    group->seq = ++set->seq;
    set->stats.unstable += group->is_stable;
    group->is_stable = 0;
    set->stats.writes++;
    return to_replica(call, set, group, set->leader, 0);
}

MF_INLINE mf_verdict handle_request(struct mf_store *s, const struct call *call, int is_write)
{
    struct mf_request *request = request_in(call);
    struct set *set = find_set(s, mf_net16(request->set));
    if (MF_UNLIKELY(set == 0)) {
        answer_request(call, MF_STATUS_UNKNOWN_SET);
        return MF_V_UNKNOWN_SET;
    }
    MF_PREFETCH(kgroup_of_hash(s, set, mf_net32(request->hash))); /* arrives during the cookie check */
    if (MF_UNLIKELY(!has_cookie(s, call->now_ns, call->in)))
        return put_cookie(s, call);
    /* SEQ never wraps within a session: the session stops taking requests first. */
    if (MF_UNLIKELY(!is_active(set, call->now_ns) || set->seq == UINT64_MAX)) {
        set->stats.unserved += (request->flags & MF_FLAG_UNSERVED) != 0;
        answer_request(call, MF_STATUS_INACTIVE);
        return MF_V_INACTIVE;
    }
    struct kgroup *group = kgroup_of(s, set, mf_net32(request->hash));
    MF_COPY(&request->client, &call->in->from);
    /* A copy from this interval or the previous one also gets here: its reply is lost, until the client's next request. */
    call->out->is_genuine = 1;
    return is_write ? pass_write(call, set, group) : pass_read(call, set, group);
}

MF_FREQUENT_HANDLER mf_verdict handle_read(struct mf_store *s, const struct call *call)
{
    mf_verdict verdict = check_request(call->in, sizeof(struct mf_request), MF_KEY_MAX, 0);
    return verdict == MF_V_OK ? handle_request(s, call, 0) : verdict;
}

MF_HANDLER mf_verdict handle_write(struct mf_store *s, const struct call *call)
{
    uint32_t fixed = sizeof(struct mf_request) + sizeof(struct mf_write);
    mf_verdict verdict = check_request(call->in, fixed, MF_KEY_MAX, MF_PACKET_MAX);
    return verdict == MF_V_OK ? handle_request(s, call, 1) : verdict;
}

#endif
