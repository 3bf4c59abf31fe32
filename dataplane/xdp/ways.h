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

/* Where the way to this address belongs: where it is, or a free place, or else the first. */
MF_INLINE struct mf_way MF_FAR *place_of_way(const struct mf_address MF_FAR *peer)
{
    uint64_t hash = way_hash(peer);
    struct mf_way MF_FAR *place = way_place(hash, 0);
    for (uint32_t k = MF_ZERO; MF_LOOP(k < WAY_PLACES); k++) {
        struct mf_way MF_FAR *way = way_place(hash, k);
        if (!way->interface || mf_address_equal(&way->peer, peer)) {
            place = way;
            break;
        }
    }
    return place;
}

MF_INLINE int asks_for_tasks(const struct mf_datagram MF_FAR *in)
{
    return in->length >= sizeof(struct mf_header) && ((const struct mf_header MF_FAR *)in->data)->operation == MF_OP_RETRIEVE;
}

/* Whether a wait of this RETRIEVE is of the sender's own slot. Who forges his address does not know what it is called. */
MF_INLINE int owns_a_slot(const struct mf_datagram MF_FAR *in)
{
    struct mf_tasks *s = (struct mf_tasks *)mf_state();
    const struct mf_retrieve *packet = (const struct mf_retrieve *)in->data;
    const struct mf_wait *waits = (const struct mf_wait *)(packet + 1);
    uint32_t records = packet->header.count;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records && k < MF_SLOTS_MAX); k++) {
        uint32_t i = mf_net32(waits[k].slot);
        if (is_registered(s, i, mf_net32(waits[k].generation)) && mf_address_equal(&slot_at(s, i)->address, &in->from))
            return 1;
    }
    return 0;
}

/* Whether a datagram, on which the core has said this, shows where an executor is. */
MF_INLINE int shows_a_way(const struct mf_datagram MF_FAR *in, uint32_t verdict)
{
    return verdict == MF_V_OK && asks_for_tasks(in) && owns_a_slot(in);
}

/* Notes the way that a frame came whose datagram the core has taken. */
MF_INLINE void learn_way(const struct mf_desk MF_FAR *desk)
{
    if (shows_a_way(&desk->in, desk->verdict))
        copy_way(place_of_way(&desk->way.peer), &desk->way);
}

/* An executor whose datagrams come by the process's socket: the way there is the socket's. */
MF_INLINE void forget_way(const struct mf_datagram MF_FAR *in, uint32_t verdict)
{
    struct mf_way MF_FAR *way = shows_a_way(in, verdict) ? find_way(&in->from) : 0;
    if (way)
        way->interface = 0;
}

#endif
