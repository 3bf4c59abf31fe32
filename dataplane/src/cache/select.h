/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The selection of an operator that is an RSNode and selects servers in this core: how it handles requests and answers. It does the same as
 * `crates/cache/src/rsnode` for a separate selector.
 *
 *   select_number.h    numbers for C3                   select_servers.h   servers' statistics
 *   select_state.h     structures                       select_score.h     servers' scores
 *   select_groups.h    replica groups                   select_choose.h    the algorithms
 *   select_order.h     the controller's orders          select_table.h     requests in flight
 *   select_check.h     for tests: consistency of the tables
 */
#ifndef MIDFLIGHT_CACHE_SELECT_H
#define MIDFLIGHT_CACHE_SELECT_H

#include "packet.h"
#include "select_choose.h"

#define EXPIRED_A_PACKET 2u /* more than a packet adds, so that the table empties while packets come */
#define EXPIRED_A_TICK 256u

/* What may be rewritten of a request, in words of 4 bytes: up to the server's address. */
#define CHOSEN_REWRITTEN 56u

_Static_assert(sizeof(struct mf_netrs_request) + 2 * sizeof(struct mf_address) <= CHOSEN_REWRITTEN &&
                   CHOSEN_REWRITTEN <= sizeof(struct mf_netrs_request) + sizeof(struct mf_ends),
               "all of it, and not more than a request has");

/* Requests that were not answered in time do not count as outstanding any more. Returns how many, at most `most`. */
MF_RARE uint32_t expire(struct mf_cache *s MF_IN_ARENA, uint64_t now_ns, uint32_t most)
{
    MF_FROM_ARENA(s);
    uint32_t expired = MF_ZERO;
    for (; MF_LOOP(expired < most && s->selection.oldest != NO_SLOT); expired++) {
        uint32_t slot = s->selection.oldest;
        const struct under_way *entry = slot_at(s, slot);
        if (MF_LIKELY(now_ns - entry->sent_ns < s->selection.expire_ns))
            break;
        add_outstanding(server_at(s, entry->server), -1u);
        free_slot(s, slot);
        s->stats.expired++;
    }
    return expired;
}

/* With a packet: mostly the oldest request is young. */
MF_INLINE void expire_some(struct mf_cache *s, uint64_t now_ns)
{
    uint32_t oldest = s->selection.oldest;
    if (oldest != NO_SLOT && MF_UNLIKELY(now_ns - slot_at(s, oldest)->sent_ns >= s->selection.expire_ns))
        expire(s, now_ns, EXPIRED_A_PACKET);
}

/* Sends a request to the server that was chosen for it. */
MF_INLINE mf_verdict send_to_server(struct mf_cache *s, const struct call *call, uint32_t number)
{
    struct mf_ends *ends = ends_of_request(call);
    struct chosen_server *server = server_at(s, number);
    uint32_t slot = take_slot(s, call->now_ns, number);
    MF_COPY(&ends->server, &server->address);
    s->stats.selected++;
    if (MF_LIKELY(slot != NO_SLOT)) {
        struct under_way *entry = slot_at(s, slot);
        MF_COPY(&entry->client, &ends->client);
        entry->request = ends->request;
        add_outstanding(server, 1);
        start_of(call)->retained = mf_net16(entry->retained);
        start_of(call)->kind = MF_KIND_RESPONSE | MF_NETRS_XOR;
    } else {
        /* An untracked answer would match no request here. */
        s->stats.untracked++;
        start_of(call)->kind = MF_KIND_MONITORED | MF_NETRS_XOR;
    }
    return forward(call->in, call->out, &server->address, CHOSEN_REWRITTEN);
}

MF_INLINE uint32_t replica_group_of(const struct call *call)
{
    const uint8_t *id = ((const struct mf_netrs_request *)call->in->data)->group;
    return (uint32_t)id[0] << 16 | (uint32_t)id[1] << 8 | id[2];
}

/* Evaluates an answer at its RSNode. Returns whether it matches a tracked request. */
MF_RARE uint32_t note_answer(struct mf_cache *s MF_IN_ARENA, const struct mf_netrs_response *answer MF_IN_ARENA, uint64_t now_ns)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(answer);
    uint32_t length = mf_net16(answer->status_length);
    const uint8_t *behind = (const uint8_t *)(answer + 1);
    expire_some(s, now_ns);
    uint32_t slot = find_slot(s, now_ns, mf_net16(answer->start.retained), (const struct mf_ends *)(behind + length));
    if (MF_UNLIKELY(slot == NO_SLOT)) {
        s->stats.unmatched++;
        return 0;
    }
    const struct under_way *entry = slot_at(s, slot);
    struct chosen_server *server = server_at(s, entry->server);
    uint64_t took = now_ns - entry->sent_ns;
    free_slot(s, slot);
    add_outstanding(server, -1u);
    s->stats.answered++;
    if (MF_LIKELY(length == sizeof(struct mf_server_status))) {
        learn(s, server, now_ns, took, (const struct mf_server_status *)behind);
    } else {
        s->stats.without_status++;
        learn(s, server, now_ns, took, 0);
    }
    return 1;
}

#endif
