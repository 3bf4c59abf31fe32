/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Writes the switch's own answers, and forwards to replicas and clients. */
#ifndef MIDFLIGHT_STORE_REPLY_H
#define MIDFLIGHT_STORE_REPLY_H

#include "cookie.h"

MF_INLINE struct mf_request *request_in(const struct call *call)
{
    return (struct mf_request *)call->in->data;
}

MF_INLINE void clear_address(struct mf_address *address)
{
    struct address_words *words = (struct address_words *)address;
    words->high = words->low = 0;
    words->port = words->reserved = 0;
}

/* Clears replicas' secrets, above all the epoch, and fields without meaning for a client. */
MF_INLINE void hide_from_client(struct mf_request *request)
{
    request->header.epoch = 0;
    request->sid = request->seq = request->index = 0;
    clear_address(&request->client);
    request->replicas = 0;
    request->flags &= MF_FLAGS_KEPT;
}

/* Answers a request with its own first bytes and a status; never longer than the request. */
MF_INLINE struct mf_request *answer_request(const struct call *call, enum mf_store_status status)
{
    const struct mf_request *request = request_in(call);
    struct mf_out_packet *packet = first_packet(call->out, &call->in->from, sizeof(*request));
    struct mf_request *answer = (struct mf_request *)packet->data;
    MF_COPY(answer, request);
    write_header(packet->data, (uint32_t)request->header.operation + 1, 0, 0, request->header.sequence);
    hide_from_client(answer);
    answer->key_length = 0;
    answer->slot = MF_NO_SLOT;
    answer->status = (uint8_t)status;
    return answer;
}

/* Asks the client to repeat its request with its cookie. */
MF_HANDLER mf_verdict put_cookie(const struct mf_store *s, const struct call *call)
{
    struct mf_request *answer = answer_request(call, MF_STATUS_COOKIE);
    struct cookie_place *place = (struct cookie_place *)&answer->client;
    place->cookie = mf_net64(cookie_of(s, call->now_ns / s->cookie_ns, call->in));
    return MF_V_NO_COOKIE;
}

MF_INLINE mf_verdict to_replica(const struct call *call, const struct set *set, const struct kgroup *group, uint32_t slot,
                                uint32_t flags)
{
    struct mf_request *request = request_in(call);
    request->header.epoch = set->epoch;
    request->sid = mf_net64(set->sid);
    request->seq = mf_net64(group->seq);
    request->index = mf_net64(group->index);
    request->replicas = 0;
    request->slot = (uint8_t)slot;
    request->status = 0;
    request->flags = (uint8_t)((request->flags & MF_FLAGS_KEPT) | flags);
    return forward(call->in, call->out, &set->replicas[slot].address, sizeof(*request));
}

MF_INLINE mf_verdict to_client(const struct call *call, const struct set *set)
{
    struct mf_request *request = request_in(call);
    mf_verdict verdict = forward(call->in, call->out, &request->client, sizeof(*request));
    hide_from_client(request);
    if (MF_UNLIKELY(set->reply_check == MF_REPLY_DIRECT))
        request->flags |= MF_FLAG_OFFERS_DIRECT;
    return verdict;
}

/* Reduces a reply to a status that tells the client to retry. */
MF_INLINE mf_verdict to_client_without_value(const struct call *call, const struct set *set, enum mf_store_status status)
{
    struct mf_request *request = request_in(call);
    mf_verdict verdict = to_client(call, set);
    request->status = (uint8_t)status;
    request->key_length = 0;
    call->out->forward.length = sizeof(*request);
    return verdict;
}

MF_INLINE uint32_t microseconds(uint64_t ns)
{
    uint64_t us = ns / 1000;
    return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

MF_INLINE void put_state(const struct set *set, const struct call *call)
{
    const struct mf_header *question = (const struct mf_header *)call->in->data;
    struct mf_out_packet *packet = first_packet(call->out, &call->in->from, sizeof(struct mf_state));
    struct mf_state *state = (struct mf_state *)packet->data;
    write_header(packet->data, MF_OP_STATE, 0, set->epoch, question->sequence);
    state->incarnation = mf_net64(set->incarnation);
    state->sid = mf_net64(set->sid);
    state->ended = mf_net64(set->ended);
    state->now = mf_net64(call->now_ns);
    state->lease = mf_net64(is_active(set, call->now_ns) ? set->lease_ends_ns - call->now_ns : 0);
    state->seq = mf_net64(set->seq);
    state->set = mf_net16(set->number);
    state->kgroup_bits = set->kgroup_bits;
    state->unserved = (uint8_t)set->stats.unserved;
    state->lease_us = mf_net32(microseconds(set->lease_ns));
    for (uint32_t i = 0; i < MF_REPLICAS_MAX; i++) {
        state->sent[i] = mf_net32(set->sent[i]);
        state->answered[i] = mf_net32(set->answered[i]);
    }
}

#endif
