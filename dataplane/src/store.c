// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The store program of the soft engine: its entry points, which dispatch datagrams to handlers. store_setup.c initialises the state.
 *
 *   shared/              used by all programs: bytes, SipHash, answers
 *
 *   store/state.h        the structures of the state
 *   store/cookie.h       cookies: proof that a client receives packets sent to its address
 *   store/reply.h        the switch's answers, and forwarding
 *   store/choose.h       chooses the replica for a READ
 *   store/from_client.h  READ, WRITE
 *   store/from_replica.h READ_REPLY, WRITE_REPLY
 *   store/session.h      HELLO, HEARTBEAT, END_SESSION
 *   store/order.h        adds, removes and changes replica sets
 */
#include "midflight/store.h"

#include "store/from_replica.h"
#include "store/order.h"
#include "store/session.h"

MF_INLINE mf_verdict check_header(const struct mf_datagram *in, struct mf_out *out)
{
    const struct mf_header *header = (const struct mf_header *)in->data;
    mf_verdict verdict = check_start(in, out);
    if (MF_UNLIKELY(verdict != MF_V_OK))
        return verdict;
    if (MF_UNLIKELY(header->key != 0))
        return MF_V_UNKNOWN_KEY;
    if (MF_UNLIKELY(in->length > MF_PACKET_MAX))
        return MF_V_TRAILING;
    return MF_LIKELY(header->operation < MF_STORE_OP_END) ? MF_V_OK : MF_V_UNKNOWN_OPERATION;
}

MF_INLINE mf_verdict handle(struct mf_store *s, const struct call *call)
{
    mf_verdict verdict = check_header(call->in, call->out);
    if (MF_UNLIKELY(verdict != MF_V_OK))
        return verdict;
    uint32_t operation = ((const struct mf_header *)call->in->data)->operation;
    s->packets[operation % MF_STORE_OP_END]++;
    switch (operation) {
    case MF_OP_READ:
        return handle_read(s, call);
    case MF_OP_READ_REPLY:
        return handle_read_reply(s, call);
    case MF_OP_WRITE:
        return handle_write(s, call);
    case MF_OP_WRITE_REPLY:
        return handle_write_reply(s, call);
    case MF_OP_HELLO:
        return handle_hello(s, call);
    case MF_OP_HEARTBEAT:
        return handle_heartbeat(s, call);
    case MF_OP_END_SESSION:
        return handle_end_session(s, call);
    default:
        return MF_V_NOT_FOR_SWITCH;
    }
}

MF_ENTRY mf_verdict mf_store_packet(struct mf_store MF_FAR *store, uint64_t now_ns, const struct mf_datagram MF_FAR *datagram,
                                    struct mf_out MF_FAR *owed)
{
    struct mf_store *s = (struct mf_store *)store;
    struct mf_out *out = (struct mf_out *)owed;
    struct call call = {now_ns, (const struct mf_datagram *)datagram, out};
    owe_nothing(out);
    mf_verdict verdict = handle(s, &call);
    s->reasons[verdict]++;
    return verdict;
}

MF_ENTRY int mf_store_owes_more(const struct mf_store MF_FAR *store, const struct mf_datagram MF_FAR *datagram, uint32_t room)
{
    const struct mf_datagram *in = (const struct mf_datagram *)datagram;
    const struct mf_header *header = (const struct mf_header *)in->data;
    (void)store;
    if (in->length < sizeof(*header) || room >= sizeof(struct mf_state))
        return 0;
    return header->operation == MF_OP_HELLO || header->operation == MF_OP_HEARTBEAT ||
           header->operation == MF_OP_END_SESSION;
}

MF_ENTRY uint32_t mf_store_tick(struct mf_store MF_FAR *store, uint64_t now_ns, struct mf_out MF_FAR *owed)
{
    (void)store, (void)now_ns;
    owe_nothing((struct mf_out *)owed);
    return 0;
}

MF_ENTRY uint32_t mf_store_order(struct mf_store MF_FAR *store, struct mf_store_order MF_FAR *ordered)
{
    struct mf_store *s = (struct mf_store *)store;
    struct mf_store_order *order = (struct mf_store_order *)ordered;
    switch (order->what) {
    case MF_SET_ADD:
        return add_set(s, order);
    case MF_SET_REMOVE:
        return remove_set(s, order);
    case MF_SET_CHANGE:
        return change_set(s, order);
    default:
        return order_done(order, MF_SET_BAD);
    }
}
