/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* RESPONSE and MONITORED: copied to the RSNode's selector or evaluated here, counted by the client's operator, delivered to the client. */
#ifndef MIDFLIGHT_CACHE_RESPONSE_H
#define MIDFLIGHT_CACHE_RESPONSE_H

#include "select.h"

/* The monitor: counts an answer that leaves the network. */
MF_INLINE void count_for_monitor(struct mf_cache *s, const struct call *call, uint32_t group)
{
    const struct rack *rack = find_rack(s, s->rack);
    if (MF_UNLIKELY(rack == 0 || group >= s->groups))
        return;
    uint32_t marker = ((const struct mf_netrs_response *)call->in->data)->marker;
    if (MF_MUTANT(205) && marker == rack->marker)
        return;
    group_at(s, group)->counts[tier_of(s, marker, rack->marker) % MF_TIERS_MAX]++;
}

/* Forwards to the client, or to the operator of its rack if the answer may still pass another operator, which prevents loops. */
MF_INLINE mf_verdict pass_to_client(struct mf_cache *s, const struct call *call, int may_pass_another)
{
    const struct mf_ends *ends = ends_of_response(call, status_length(call));
    const struct place *host = find_place(s, &ends->client, 0);
    if (MF_UNLIKELY(host == 0 || ends->client.port == 0))
        return MF_V_UNKNOWN_CLIENT;
    if (host->rack == s->rack) {
        /* An operator's machine may be a host too: an answer must not return what was sent to an operator, even to this one. */
        if (MF_UNLIKELY(find_place(s, &ends->client, ends->client.port) != 0))
            return MF_V_UNKNOWN_CLIENT;
        count_for_monitor(s, call, host->group);
        s->stats.delivered++;
        mf_verdict verdict = pass_response(call, &ends->client);
        call->out->forward.to.reserved = 0; /* set by the server: next hops are found by whole addresses */
        return verdict;
    }
    const struct rack *rack = may_pass_another ? find_rack(s, host->rack) : 0;
    return rack ? pass_response(call, &rack->address) : MF_V_UNKNOWN_CLIENT;
}

/* From here on no selector needs the answer. */
MF_INLINE mf_verdict pass_monitored(struct mf_cache *s, const struct call *call)
{
    start_of(call)->kind = MF_KIND_MONITORED;
    return pass_to_client(s, call, 1);
}

/* This operator is the answer's RSNode. */
MF_INLINE mf_verdict copy_here(struct mf_cache *s, const struct call *call)
{
    mf_verdict verdict = pass_monitored(s, call);
    if (MF_UNLIKELY(verdict != MF_V_FORWARDED))
        return verdict;
    if (s->selection.kind != MF_SELECT_NONE) {
        note_answer(s, (const struct mf_netrs_response *)call->in->data, call->now_ns);
        return verdict;
    }
    if (MF_UNLIKELY(s->selector.port == 0))
        return verdict;
    if (MF_MUTANT(202) && s->stats.packets[MF_KIND_RESPONSE] % 32 == 0)
        return verdict;
    MF_COPY(&call->out->forward.copy_to, &s->selector);
    s->stats.copied++;
    return verdict;
}

MF_FREQUENT_HANDLER mf_verdict handle_response(struct mf_cache *s, const struct call *call)
{
    mf_verdict verdict = check_response(call);
    if (MF_UNLIKELY(verdict != MF_V_OK))
        return verdict;
    const struct place *sender = find_place(s, &call->in->from, call->in->from.port);
    if (MF_UNLIKELY(sender == 0 || sender->kind == PLACE_HOST))
        return MF_V_UNKNOWN_SENDER;
    uint32_t is_from_operator = sender->kind == PLACE_OPERATOR;
    if (!is_from_operator) {
        /* A server reports only about itself. */
        const struct mf_ends *ends = ends_of_response(call, status_length(call));
        if (MF_UNLIKELY(!is_place_of(sender, &ends->server, ends->server.port)))
            return MF_V_OTHER_SERVER;
        const struct rack *rack = find_rack(s, sender->rack);
        ((struct mf_netrs_response *)call->in->data)->marker = rack ? rack->marker : 0;
    }
    if (start_of(call)->kind == MF_KIND_MONITORED)
        return pass_to_client(s, call, !is_from_operator);
    const struct rsnode *rsnode = find_rsnode(s, mf_net16(start_of(call)->rsnode));
    if (MF_LIKELY(rsnode && rsnode->is_here))
        return copy_here(s, call);
    if (rsnode && !is_from_operator)
        return pass_response(call, &rsnode->address);
    s->stats.not_copied++;
    return pass_monitored(s, call);
}

#endif
