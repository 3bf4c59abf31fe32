/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Ways to executors. A task that a client submits goes to an executor who waits: a frame to somebody who did not just send
 * one. How it gets there is learned from his last RETRIEVE: back the way that came, from the address that it named. That is
 * cheaper than asking the kernel's routes and neighbours, needs no forwarding to be allowed, and agrees with XDP's answers.
 * It is a cache: what is not in it goes another way (tc.h).
 *
 * All under the queue's lock.
 */
#ifndef MIDFLIGHT_WAYS_H
#define MIDFLIGHT_WAYS_H

#include "core.h"
#include "words.h"

#define WAY_PLACES 4 /* where the way to an address may be: its hash says where they begin */

/* The salt goes into each part, so that who does not know it can choose none that makes up for another. */
MF_INLINE uint64_t way_hash(const struct mf_address MF_FAR *peer)
{
    uint64_t salt = MF_CONTROL->ways_salt;
    return mf_mix(mf_mix(FAR_LONG(peer->ip) ^ salt) + FAR_LONG(peer->ip + 8) + peer->port * (salt | 1));
}

MF_INLINE struct mf_way MF_FAR *way_place(uint64_t hash, uint32_t k)
{
    return (struct mf_way MF_FAR *)(uintptr_t)MF_WAYS_AT + ((hash + k) & (MF_WAYS - 1));
}

/* The way to this address, or null. */
MF_INLINE struct mf_way MF_FAR *find_way(const struct mf_address MF_FAR *peer)
{
    uint64_t hash = way_hash(peer);
    for (uint32_t k = MF_ZERO; MF_LOOP(k < WAY_PLACES); k++) {
        struct mf_way MF_FAR *way = way_place(hash, k);
        if (way->interface && mf_address_equal(&way->peer, peer))
            return way;
    }
    return 0;
}

MF_INLINE void copy_way(struct mf_way MF_FAR *to, const struct mf_way MF_FAR *from)
{
    _Pragma("unroll") for (uint32_t i = 0; i < sizeof(*to); i += sizeof(mf_long))
        FAR_LONG((uint8_t MF_FAR *)to + i) = FAR_LONG((uint8_t MF_FAR *)from + i);
}

/* Where the way to this address belongs: where it is, or the first free place, or else the first. */
MF_INLINE struct mf_way MF_FAR *place_of_way(const struct mf_address MF_FAR *peer)
{
    struct mf_way MF_FAR *known = find_way(peer);
    if (known)
        return known;
    uint64_t hash = way_hash(peer);
    for (uint32_t k = MF_ZERO; MF_LOOP(k < WAY_PLACES); k++)
        if (!way_place(hash, k)->interface)
            return way_place(hash, k);
    return way_place(hash, 0);
}

MF_INLINE int asks_for_tasks(const struct mf_datagram MF_FAR *in)
{
    return in->length >= sizeof(struct mf_header) && ((const struct mf_header MF_FAR *)in->data)->operation == MF_OP_RETRIEVE;
}

/* Whether a wait of this RETRIEVE is one that was answered by a task, so that it may be told again. */
MF_INLINE int may_repeat_assignments(const struct mf_datagram MF_FAR *in)
{
    struct mf_tasks *s = (struct mf_tasks *)mf_state();
    const struct mf_retrieve *packet = (const struct mf_retrieve *)in->data;
    const struct mf_wait *waits = (const struct mf_wait *)(packet + 1);
    uint32_t records = packet->header.count;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records && k < MF_SLOTS_MAX); k++) {
        uint32_t i = mf_net32(waits[k].slot);
        const struct slot *slot = slot_at(s, i <= s->slots.fresh ? i : NONE);
        if (slot->state == SLOT_ASSIGNED && slot->sequence == mf_net32(waits[k].sequence))
            return 1;
    }
    return 0;
}

/* Whether a wait of this RETRIEVE is of the sender's own slot, by a counter that is new to it. Who forges his address does not
 * know what the slot is called, and who copies what he sent comes too late. */
MF_INLINE int owns_a_slot(const struct mf_datagram MF_FAR *in)
{
    struct mf_tasks *s = (struct mf_tasks *)mf_state();
    const struct mf_retrieve *packet = (const struct mf_retrieve *)in->data;
    const struct mf_wait *waits = (const struct mf_wait *)(packet + 1);
    uint64_t counter = mf_net64(packet->counter);
    uint32_t records = packet->header.count;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records && k < MF_SLOTS_MAX); k++) {
        uint32_t i = mf_net32(waits[k].slot);
        if (!is_registered(s, i, mf_net32(waits[k].generation)))
            continue;
        const struct slot *slot = slot_at(s, i);
        if (counter > slot->counter && mf_address_equal(&slot->address, &in->from))
            return 1;
    }
    return 0;
}

/* Whether a datagram shows where an executor is, should the core take it. To be asked before, for the core notes the
 * counter. */
MF_INLINE int shows_a_way(const struct mf_datagram MF_FAR *in)
{
    return asks_for_tasks(in) && owns_a_slot(in);
}

/* Notes the way that a frame came which has shown one. */
MF_INLINE void learn_way(const struct mf_desk MF_FAR *desk)
{
    copy_way(place_of_way(&desk->way.peer), &desk->way);
}

/* The core takes the datagram on the desk, which came in a frame. */
MF_INLINE void take_from_frame(struct mf_desk MF_FAR *desk)
{
    int shows = shows_a_way(&desk->in);
    desk->verdict = take(now_ns(), &desk->in, &desk->out);
    if (shows && desk->verdict == MF_V_OK)
        learn_way(desk);
}

/* An executor whose datagrams come by the process's socket: the way there is the socket's. */
MF_INLINE void forget_way(const struct mf_datagram MF_FAR *in)
{
    struct mf_way MF_FAR *way = find_way(&in->from);
    if (way)
        way->interface = 0;
}

/* The core takes a datagram that came by the process's socket. */
MF_INLINE enum mf_verdict take_from_socket(struct mf_desk MF_FAR *desk)
{
    int shows = shows_a_way(&desk->in);
    enum mf_verdict verdict = take(now_ns(), &desk->in, &desk->out);
    if (shows && verdict == MF_V_OK)
        forget_way(&desk->in);
    return verdict;
}

#endif
