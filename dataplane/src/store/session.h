/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* HELLO, HEARTBEAT, END_SESSION: sessions start, continue and end. */
#ifndef MIDFLIGHT_STORE_SESSION_H
#define MIDFLIGHT_STORE_SESSION_H

#include "reply.h"

/* Whether a replica has this address, and the sender does too. */
MF_INLINE int is_at(const struct mf_address *replica, const struct mf_address *from)
{
    return replica->port != 0 && mf_address_equal(replica, from);
}

/* Whether a sender is a replica of the set, named by the operator or by the leader. */
MF_INLINE int is_replica(const struct set *set, const struct mf_address *from)
{
    uint32_t slot = MF_ZERO;
    while (MF_LOOP(slot < MF_REPLICAS_MAX && !is_at(&set->named[slot], from) && !is_at(&set->replicas[slot].address, from)))
        slot++;
    return slot < MF_REPLICAS_MAX;
}

MF_INLINE mf_verdict find_set_of_replica(struct mf_store *s, const struct call *call, uint32_t number, struct set **set)
{
    *set = find_set(s, number);
    if (*set == 0)
        return MF_V_UNKNOWN_SET;
    return is_replica(*set, &call->in->from) ? MF_V_OK : MF_V_FOREIGN_REPLICA;
}

/* Whether a HELLO has the secret incarnation, and a later echo than all before it from this place. If so, it is not a copy. */
MF_INLINE uint32_t is_later_hello(struct set *set, uint64_t now_ns, const struct mf_hello *hello)
{
    uint64_t *last = &set->echoes[hello->slot % MF_REPLICAS_MAX], echo = mf_net64(hello->echo);
    if (set->incarnation != mf_net64(hello->incarnation) || echo > now_ns || echo <= *last)
        return 0;
    *last = echo;
    return 1;
}

MF_HANDLER mf_verdict handle_hello(struct mf_store *s, const struct call *call)
{
    const struct mf_hello *hello = (const struct mf_hello *)call->in->data;
    struct set *set;
    mf_verdict verdict = check_shape(call->in, sizeof(*hello), 0, 0, 0);
    if (verdict == MF_V_OK)
        verdict = find_set_of_replica(s, call, mf_net16(hello->set), &set);
    if (verdict != MF_V_OK)
        return verdict;
    call->out->is_genuine = is_later_hello(set, call->now_ns, hello);
    put_state(set, call);
    return MF_V_OK;
}

/* Whether this HEARTBEAT may start or continue a session: its leader has an address, and a session's leader and start never change. */
MF_INLINE int is_possible(const struct set *set, const struct mf_heartbeat *beat, const struct mf_replica *replicas)
{
    if (beat->leader >= beat->header.count || replicas[beat->leader].address.port == 0)
        return 0;
    return set->sid != mf_net64(beat->sid) || (set->start == mf_net64(beat->start) && set->leader == beat->leader);
}

MF_INLINE mf_verdict check_heartbeat(const struct set *set, uint64_t now_ns, const struct mf_heartbeat *beat,
                                     const struct mf_replica *replicas)
{
    uint64_t sid = mf_net64(beat->sid), echo = mf_net64(beat->echo);
    if (set->incarnation != mf_net64(beat->incarnation))
        return MF_V_FOREIGN_INCARNATION;
    if (set->kgroup_bits != beat->kgroup_bits)
        return MF_V_BAD_KGROUPS;
    if ((sid <= set->ended && !MF_MUTANT(105)) || sid < set->sid)
        return MF_V_OLD_SESSION;
    if (!is_possible(set, beat, replicas))
        return MF_V_BAD_SESSION;
    return echo <= now_ns && now_ns - echo < set->lease_ns ? MF_V_OK : MF_V_OLD_ECHO;
}

/* All key groups count as stable from now on: see kgroup_of(). */
MF_INLINE void begin_session(struct set *set, const struct mf_heartbeat *beat)
{
    set->sid = mf_net64(beat->sid);
    set->start = mf_net64(beat->start);
    set->leader = beat->leader;
    set->lease_ends_ns = set->seq = set->answered_seq = 0;
    for (uint32_t slot = 0; slot < MF_REPLICAS_MAX; slot++)
        set->sent[slot] = set->answered[slot] = 0;
    set->stats.unstable = 0;
    set->stats.sessions++;
}

MF_INLINE void update_replicas(struct set *set, const struct mf_replica *replicas, uint32_t count)
{
    set->slots = (uint8_t)count;
    for (uint32_t slot = MF_ZERO; MF_LOOP(slot < MF_REPLICAS_MAX); slot++) {
        struct replica *replica = &set->replicas[slot];
        if (slot >= count || replicas[slot].address.port == 0) {
            clear_address(&replica->address);
            replica->given = 0;
            replica->matched = 0;
            continue;
        }
        MF_COPY(&replica->address, &replicas[slot].address);
        replica->address.reserved = 0;
        replica->given = replicas[slot].weight;
        replica->matched = mf_net64(replicas[slot].matched);
    }
    weigh(set);
}

MF_INLINE void take_heartbeat(struct set *set, const struct call *call, const struct mf_heartbeat *beat,
                              const struct mf_replica *replicas)
{
    uint64_t ends_ns = (MF_MUTANT(103) ? call->now_ns : mf_net64(beat->echo)) + set->lease_ns;
    if (set->sid != mf_net64(beat->sid))
        begin_session(set, beat);
    update_replicas(set, replicas, beat->header.count);
    set->read_flags = beat->any_replica ? MF_FLAG_ANY_REPLICA : 0;
    set->probes = MF_PROBES * 0x0101010101010101ull;
    if (beat->is_idle)
        set->answered_seq = set->seq;
    if (ends_ns > set->lease_ends_ns) {
        set->lease_ends_ns = ends_ns;
        /* It has the secret incarnation and a later echo than any before, so it is not a copy. */
        call->out->is_genuine = 1;
    }
}

MF_HANDLER mf_verdict handle_heartbeat(struct mf_store *s, const struct call *call)
{
    const struct mf_heartbeat *beat = (const struct mf_heartbeat *)call->in->data;
    const struct mf_replica *replicas = (const struct mf_replica *)(call->in->data + sizeof(*beat));
    struct set *set;
    mf_verdict verdict = check_shape(call->in, sizeof(*beat), sizeof(*replicas), 1, MF_REPLICAS_MAX);
    if (verdict == MF_V_OK)
        verdict = find_set_of_replica(s, call, mf_net16(beat->set), &set);
    if (verdict != MF_V_OK)
        return verdict;
    verdict = check_heartbeat(set, call->now_ns, beat, replicas);
    if (verdict == MF_V_OK)
        take_heartbeat(set, call, beat, replicas);
    put_state(set, call);
    return verdict;
}

MF_HANDLER mf_verdict handle_end_session(struct mf_store *s, const struct call *call)
{
    const struct mf_end_session *end = (const struct mf_end_session *)call->in->data;
    struct set *set;
    mf_verdict verdict = check_shape(call->in, sizeof(*end), 0, 0, 0);
    if (verdict == MF_V_OK)
        verdict = find_set_of_replica(s, call, mf_net16(end->set), &set);
    if (verdict != MF_V_OK)
        return verdict;
    uint64_t sid = mf_net64(end->sid);
    if (set->incarnation != mf_net64(end->incarnation)) {
        put_state(set, call);
        return MF_V_FOREIGN_INCARNATION;
    }
    if (sid > set->ended)
        set->ended = sid;
    if (set->sid <= sid)
        set->lease_ends_ns = 0;
    put_state(set, call);
    return MF_V_OK;
}

#endif
