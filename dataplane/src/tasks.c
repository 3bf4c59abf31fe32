// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The soft engine of the tasks program: the way of a datagram to its handler, and time. tasks_setup.c lays its memory out.
 *
 *   tasks/state.h          what is kept
 *   tasks/index.h          hash chains: clients, slots and tasks by name
 *   tasks/pools.h          free elements
 *   tasks/queue.h          the queue: lists per level and mask, oldest first
 *   tasks/parking.h        slots that wait
 *   tasks/assign.h         tasks meet slots
 *   tasks/reply.h          datagrams out
 *   tasks/from_client.h    SUBMIT, CANCEL, PROBE
 *   tasks/from_executor.h  REGISTER, RETRIEVE, KEEPALIVE, RELEASE
 */
#include "midflight/tasks.h"

#include "tasks/from_client.h"
#include "tasks/from_executor.h"

/* Reads the header of a datagram. */
MF_INLINE enum mf_verdict check_header(const uint8_t MF_FAR *data, uint32_t length, uint32_t *operation)
{
    const struct mf_header MF_FAR *header = (const struct mf_header MF_FAR *)data;
    if (MF_UNLIKELY(length < sizeof(*header)))
        return MF_V_TRUNCATED;
    *operation = header->operation;
    if (MF_UNLIKELY(header->magic != mf_net16(MF_MAGIC)))
        return MF_V_BAD_MAGIC;
    if (MF_UNLIKELY(header->version != MF_VERSION))
        return MF_V_BAD_VERSION;
    if (MF_UNLIKELY(*operation - 1 >= MF_OP_END - 1))
        return MF_V_UNKNOWN_OPERATION;
    return MF_V_OK;
}

/* The most frequent operations come first. */
MF_INLINE enum mf_verdict handle(struct mf_tasks MF_FAR *s, struct call *call, uint32_t operation)
{
    if (operation == MF_OP_RETRIEVE)
        return handle_retrieve(s, call);
    if (operation == MF_OP_SUBMIT)
        return handle_submit(s, call);
    switch (operation) {
    case MF_OP_KEEPALIVE:
        return handle_keepalive(s, call);
    case MF_OP_PROBE:
        return handle_probe(s, call);
    case MF_OP_REGISTER:
        return handle_register(s, call);
    case MF_OP_RELEASE:
        return handle_release(s, call);
    case MF_OP_CANCEL:
        return handle_cancel(s, call);
    default:
        return MF_V_NOT_FOR_SWITCH;
    }
}

MF_ENTRY enum mf_verdict mf_tasks_packet(struct mf_tasks MF_FAR *s, uint64_t now_ns,
                                         const struct mf_datagram MF_FAR *in, struct mf_out MF_FAR *out)
{
    uint32_t operation = 0;
    enum mf_verdict verdict = check_header(in->data, in->length, &operation);
    out->count = 0;
    if (MF_LIKELY(verdict == MF_V_OK)) {
        struct call call = {now_ns, in, out};
        s->stats.packets[operation]++;
        verdict = handle(s, &call, operation);
    }
    count(s, verdict);
    return verdict;
}

MF_ENTRY int mf_tasks_owes_several(const struct mf_tasks MF_FAR *s, const struct mf_datagram MF_FAR *in)
{
    const struct mf_header MF_FAR *header = (const struct mf_header MF_FAR *)in->data;
    if (in->length < sizeof(*header))
        return 0;
    switch (header->operation) {
    case MF_OP_SUBMIT:   /* assigns what it brings */
    case MF_OP_REGISTER: /* and these what they give back */
    case MF_OP_RELEASE:
        return s->stats.parked != 0;
    case MF_OP_RETRIEVE:
        return retrieve_owes_several(s, in);
    default:
        return 0;
    }
}

/* Takes from one slot what its silence has cost it. */
static void expire(struct mf_tasks MF_FAR *s, uint64_t now_ns, uint32_t i, struct mf_out MF_FAR *out)
{
    struct slot MF_FAR *slot = slot_at(s, i);
    uint64_t silent_ns = now_ns > slot->heard_ns ? now_ns - slot->heard_ns : 0;
    if (slot->state == SLOT_ASSIGNED && silent_ns >= s->lease_ns) {
        slot->spent = 1;
        s->stats.expired++;
        requeue(s, out, now_ns, take_from_slot(s, slot));
    } else if (slot->state == SLOT_WAITING && silent_ns >= s->lease_ns / 2) {
        unpark(s, i);
    } else if (slot->state == SLOT_FREE && silent_ns >= s->slot_idle_ns) {
        vacate(s, i);
    }
}

MF_ENTRY uint32_t mf_tasks_tick(struct mf_tasks MF_FAR *s, uint64_t now_ns, struct mf_out MF_FAR *out)
{
    uint32_t looked = MF_ZERO;
    out->count = 0;
    while (MF_LOOP(looked < MF_TICK_SLOTS && looked < s->slots.fresh && out->count < MF_OUT_MAX)) {
        s->tick_cursor = s->tick_cursor < s->slots.fresh ? s->tick_cursor + 1 : 1;
        expire(s, now_ns, s->tick_cursor, out);
        looked++;
    }
    return looked;
}
