// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The tasks program of the soft engine: its entry points, which dispatch datagrams to handlers. tasks_setup.c initialises the state.
 *
 *   shared/                used by all programs: bytes, SipHash, answers
 *
 *   tasks/state.h          the structures of the state
 *   tasks/index.h          hash tables: clients, slots, tasks and sources by name
 *   tasks/pools.h          allocation of their elements
 *   tasks/arguments.h      arguments that exceed the record
 *   tasks/queue.h          the queue: lists per level and mask, oldest first
 *   tasks/places.h         places of slots, with the slots parked there
 *   tasks/parking.h        slots that wait for a task
 *   tasks/assign.h         assigns tasks to slots
 *   tasks/wishes.h         placement preferences: tasks that wait for their place
 *   tasks/reply.h          writes answers
 *   tasks/cookie.h         cookies: proof that a sender receives packets sent to its address
 *   tasks/sources.h        sender addresses, and their shares of each table
 *   tasks/slots.h          executors' slots: registration, removal, and permission to act for one
 *   tasks/from_client.h    SUBMIT, CANCEL, PROBE
 *   tasks/retrieve.h       RETRIEVE
 *   tasks/from_executor.h  REGISTER, KEEPALIVE, RELEASE
 *   tasks/give_up.h        the lease reaper, silent clients, the operator's purge
 */
#include "midflight/tasks.h"

#include "tasks/from_client.h"
#include "tasks/from_executor.h"
#include "tasks/give_up.h"

/* All operations except the two frequent ones, and packets without a valid operation. */
MF_RARE mf_verdict handle_others(struct mf_tasks *s MF_IN_ARENA, uint64_t now_ns,
                                      const struct mf_datagram *in MF_IN_ARENA, struct mf_out *out MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    MF_FROM_ARENA(out);
    const struct mf_header *header = (const struct mf_header *)in->data;
    struct call call = {now_ns, in, out};
    mf_verdict verdict = check_start(in, out);
    if (verdict != MF_V_OK)
        return verdict;
    uint32_t operation = header->operation;
    if (operation - 1 >= MF_OP_END - 1)
        return MF_V_UNKNOWN_OPERATION;
    ++*MF_AT(s, stats.packets, operation);
    switch (operation) {
    case MF_OP_KEEPALIVE:
        return handle_keepalive(s, &call);
    case MF_OP_PROBE:
        return handle_probe(s, &call);
    case MF_OP_REGISTER:
        return handle_register(s, &call);
    case MF_OP_RELEASE:
        return handle_release(s, &call);
    case MF_OP_CANCEL:
        return handle_cancel(s, &call);
    default:
        return header->key ? MF_V_UNKNOWN_KEY : MF_V_NOT_FOR_SWITCH;
    }
}

/* One comparison of the first four bytes (magic, version, operation) recognises a frequent packet. */
MF_INLINE mf_verdict handle(struct mf_tasks *s, uint64_t now_ns, const struct mf_datagram *in, struct mf_out *out)
{
    if (MF_LIKELY(in->length >= sizeof(struct mf_header))) {
        uint32_t start = mf_low_byte_first(((const struct mf_first_word *)in->data)->word);
        if (start == header_start(MF_OP_RETRIEVE))
            return handle_retrieve(s, now_ns, in, out);
        if (MF_LIKELY(start == header_start(MF_OP_SUBMIT)))
            return handle_submit(s, now_ns, in, out);
    }
    return handle_others(s, now_ns, in, out);
}

MF_ENTRY mf_verdict mf_tasks_packet(struct mf_tasks MF_FAR *tasks, uint64_t now_ns,
                                         const struct mf_datagram MF_FAR *datagram, struct mf_out MF_FAR *owed)
{
    struct mf_tasks *s = (struct mf_tasks *)tasks;
    struct mf_out *out = (struct mf_out *)owed;
    owe_nothing(out);
    mf_verdict verdict = handle(s, now_ns, (const struct mf_datagram *)datagram, out);
    if (MF_UNLIKELY(s->blocks.used != 0))
        put_all_arguments(s, out);
    if (MF_LIKELY(verdict == MF_V_OK))
        s->stats.reasons[MF_V_OK]++;
    else
        count(s, verdict);
    return verdict;
}

MF_ENTRY int mf_tasks_owes_more(const struct mf_tasks MF_FAR *tasks, const struct mf_datagram MF_FAR *datagram, uint32_t room)
{
    const struct mf_tasks *s = (const struct mf_tasks *)tasks;
    const struct mf_datagram *in = (const struct mf_datagram *)datagram;
    const struct mf_header *header = (const struct mf_header *)in->data;
    if (in->length < sizeof(*header))
        return 0;
    switch (header->operation) {
    case MF_OP_SUBMIT:   /* may assign its tasks to parked slots */
    case MF_OP_REGISTER: /* this and RELEASE may assign tasks that slots return */
    case MF_OP_RELEASE:
        if (MF_MUTANT(18) && header->count > 16 && s->stats.parked == 1) /* planted bug: one parked slot counts as none */
            return 0;
        return s->stats.parked != 0;
    case MF_OP_RETRIEVE:
        return retrieve_owes_more(s, in, room);
    case MF_OP_CANCEL:
        return cancel_owes_more(in, room);
    case MF_OP_KEEPALIVE:
        return keepalive_owes_more(in, room);
    default:
        return 0;
    }
}

MF_ENTRY uint32_t mf_tasks_tick(struct mf_tasks MF_FAR *tasks, uint64_t now_ns, struct mf_out MF_FAR *owed)
{
    struct mf_tasks *s = (struct mf_tasks *)tasks;
    struct mf_out *out = (struct mf_out *)owed;
    owe_nothing(out);
    int is_steady = has_ticked_steadily(s, now_ns);
    run_out_of_patience(s, now_ns, out);
    uint32_t visited = is_steady ? expire_slots(s, now_ns, out) : 0;
    if (s->blocks.used != 0)
        put_all_arguments(s, out);
    if (is_steady) {
        expire_clients(s, now_ns);
        drop_tasks_of_silent(s, now_ns);
    }
    return visited;
}

MF_ENTRY uint32_t mf_tasks_order(struct mf_tasks MF_FAR *tasks, struct mf_tasks_order MF_FAR *order)
{
    return purge_tasks((struct mf_tasks *)tasks, (struct mf_tasks_order *)order);
}
