/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* REQUEST: gets the id of its RSNode and goes there; at the RSNode, to the selector or to the server selected here. */
#ifndef MIDFLIGHT_CACHE_REQUEST_H
#define MIDFLIGHT_CACHE_REQUEST_H

#include "cookie.h"
#include "select.h"

/* Sends a request without selection to the client's backup, as a packet that no operator handles; the monitor counts the answer. A client
 * may name any address as its backup, so only those of servers are used. */
MF_INLINE mf_verdict degrade(struct mf_cache *s, const struct call *call, uint64_t *counter)
{
    struct mf_ends *ends = ends_of_request(call);
    const struct place *place = find_place(s, &ends->server, ends->server.port);
    if (MF_UNLIKELY(place == 0 || place->kind != PLACE_SERVER))
        return MF_V_UNKNOWN_SERVER;
    start_of(call)->rsnode = mf_net16(MF_ILLEGAL_RSNODE);
    start_of(call)->kind = MF_KIND_MONITORED | MF_NETRS_XOR;
    (*counter)++;
    return pass_request(call, &place->address);
}

/* Selects a server here. N3: a request of an unknown replica group goes to its backup. */
MF_INLINE mf_verdict choose_here(struct mf_cache *s, const struct call *call)
{
    expire_some(s, call->now_ns);
    const struct replica_group *group = find_replica_group(s, replica_group_of(call));
    if (MF_UNLIKELY(group == 0))
        return degrade(s, call, &s->stats.unknown_group);
    return send_to_server(s, call, choose(s, group, call->now_ns));
}

MF_INLINE mf_verdict select_here(struct mf_cache *s, const struct call *call)
{
    if (s->selection.kind != MF_SELECT_NONE)
        return choose_here(s, call);
    if (MF_MUTANT(206) && s->selector.port == 0)
        return MF_V_UNKNOWN_SERVER;
    if (MF_UNLIKELY(s->selector.port == 0))
        return degrade(s, call, &s->stats.without_rsnode);
    s->stats.selected++;
    return pass_request(call, &s->selector);
}

/* From a host of this rack: its traffic group decides, whatever RSNode it names. */
MF_INLINE mf_verdict label(struct mf_cache *s, const struct call *call, const struct place *host)
{
    if (MF_UNLIKELY(!has_cookie(s, call)))
        return put_cookie(s, call);
    MF_COPY(&ends_of_request(call)->client, &call->in->from);
    /* A copy from this interval or the previous one also gets here: an answer is lost, until the client's next request. */
    call->out->is_genuine = 1;
    uint32_t id = host->group < s->groups ? group_at(s, host->group)->rsnode : MF_NO_RSNODE;
    if (MF_UNLIKELY(id == MF_NO_RSNODE || id == MF_ILLEGAL_RSNODE))
        return degrade(s, call, &s->stats.degraded);
    const struct rsnode *rsnode = find_rsnode(s, id);
    if (MF_UNLIKELY(rsnode == 0))
        return degrade(s, call, &s->stats.without_rsnode);
    start_of(call)->rsnode = mf_net16((uint16_t)id);
    s->stats.labelled++;
    return rsnode->is_here ? select_here(s, call) : pass_request(call, &rsnode->address);
}

/* From another operator, so for this RSNode. If this operator is not its RSNode (any more), the request goes to its backup, never to
 * another operator, which prevents loops. */
MF_INLINE mf_verdict take_labelled(struct mf_cache *s, const struct call *call)
{
    const struct rsnode *rsnode = find_rsnode(s, mf_net16(start_of(call)->rsnode));
    return rsnode && rsnode->is_here ? select_here(s, call) : degrade(s, call, &s->stats.without_rsnode);
}

MF_FREQUENT_HANDLER mf_verdict handle_request(struct mf_cache *s, const struct call *call)
{
    mf_verdict verdict = check_request(call);
    if (MF_UNLIKELY(verdict != MF_V_OK))
        return verdict;
    const struct place *sender = find_sender(s, &call->in->from);
    if (MF_UNLIKELY(sender == 0))
        return MF_V_UNKNOWN_SENDER;
    if (sender->kind == PLACE_OPERATOR)
        return take_labelled(s, call);
    if (MF_UNLIKELY(sender->kind != PLACE_HOST || sender->rack != s->rack))
        return MF_V_UNKNOWN_SENDER;
    return label(s, call, sender);
}

#endif
