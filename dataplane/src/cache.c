// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The cache program of the soft engine: its entry points, which dispatch datagrams to handlers. cache_setup.c initialises the state.
 *
 *   shared/              used by all programs: bytes, SipHash, answers
 *
 *   cache/state.h        the tables that the controller fills
 *   cache/packet.h       the parts of a datagram
 *   cache/cookie.h       cookies: proof that a client receives packets sent to its address
 *   cache/request.h      REQUEST
 *   cache/response.h     RESPONSE, MONITORED
 *   cache/select*.h      selects a request's server, if this operator selects itself
 *   cache/order.h        sets and removes rules; crates/cache/src/control/keeper.rs handles the controller's ASK and SET
 */
#include "midflight/cache.h"

#include "cache/order.h"
#include "cache/request.h"
#include "cache/response.h"

MF_INLINE mf_verdict put_netrs_version(const struct call *call)
{
    struct mf_netrs *start = (struct mf_netrs *)first_packet(call->out, &call->in->from, sizeof(*start))->data;
    start->rsnode = start->retained = 0;
    start->magic = mf_net32(MF_NETRS_MAGIC);
    start->version = MF_NETRS_VERSION;
    start->kind = MF_KIND_VERSION;
    return MF_V_BAD_VERSION;
}

MF_INLINE mf_verdict check_netrs_start(const struct call *call)
{
    const struct mf_netrs *start = start_of(call);
    if (MF_UNLIKELY(call->in->length < sizeof(*start)))
        return MF_V_TRUNCATED;
    if (MF_UNLIKELY(start->magic != mf_net32(MF_NETRS_MAGIC)))
        return MF_V_BAD_MAGIC;
    if (MF_UNLIKELY(call->in->length > MF_PACKET_MAX))
        return MF_V_TRAILING;
    if (MF_UNLIKELY(start->kind == MF_KIND_VERSION))
        return MF_V_NOT_FOR_SWITCH;
    if (MF_UNLIKELY(start->version != MF_NETRS_VERSION))
        return put_netrs_version(call);
    return MF_LIKELY((start->kind & ~MF_NETRS_XOR) < MF_KIND_END) ? MF_V_OK : MF_V_UNKNOWN_OPERATION;
}

MF_INLINE mf_verdict handle(struct mf_cache *s, const struct call *call)
{
    mf_verdict verdict = check_netrs_start(call);
    if (MF_UNLIKELY(verdict != MF_V_OK))
        return verdict;
    uint32_t kind = start_of(call)->kind;
    /* A packet on its way to a server does not come to a switch. */
    if (MF_UNLIKELY(kind & MF_NETRS_XOR))
        return MF_V_NOT_FOR_SWITCH;
    s->stats.packets[kind % MF_KIND_END]++;
    switch (kind) {
    case MF_KIND_REQUEST:
        return handle_request(s, call);
    case MF_KIND_RESPONSE:
    case MF_KIND_MONITORED:
        return handle_response(s, call);
    default:
        return MF_V_NOT_FOR_SWITCH;
    }
}

MF_ENTRY mf_verdict mf_cache_packet(struct mf_cache MF_FAR *cache, uint64_t now_ns,
                                       const struct mf_datagram MF_FAR *datagram, struct mf_out MF_FAR *owed)
{
    struct mf_cache *s = (struct mf_cache *)cache;
    struct mf_out *out = (struct mf_out *)owed;
    struct call call = {now_ns, (const struct mf_datagram *)datagram, out};
    owe_nothing(out);
    mf_verdict verdict = handle(s, &call);
    s->stats.reasons[verdict]++;
    return verdict;
}

MF_ENTRY int mf_cache_owes_more(const struct mf_cache MF_FAR *cache, const struct mf_datagram MF_FAR *datagram,
                                   uint32_t room)
{
    const struct mf_datagram *in = (const struct mf_datagram *)datagram;
    const struct mf_cache *s = (const struct mf_cache *)cache;
    const struct mf_netrs *start = (const struct mf_netrs *)in->data;
    (void)room;
    if (in->length < sizeof(*start) || start->kind != MF_KIND_RESPONSE || s->selector.port == 0 ||
        s->selection.kind != MF_SELECT_NONE)
        return 0;
    const struct rsnode *rsnode = find_rsnode((struct mf_cache *)s, mf_net16(start->rsnode));
    return rsnode != 0 && rsnode->is_here;
}

MF_ENTRY uint32_t mf_cache_tick(struct mf_cache MF_FAR *cache, uint64_t now_ns, struct mf_out MF_FAR *owed)
{
    struct mf_cache *s = (struct mf_cache *)cache;
    owe_nothing((struct mf_out *)owed);
    return s->selection.kind == MF_SELECT_NONE ? 0 : expire(s, now_ns, EXPIRED_A_TICK);
}

MF_ENTRY uint32_t mf_cache_order(struct mf_cache MF_FAR *cache, struct mf_cache_order MF_FAR *ordered)
{
    return obey((struct mf_cache *)cache, (struct mf_cache_order *)ordered);
}
