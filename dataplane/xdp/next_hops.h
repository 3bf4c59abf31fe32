/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The next hop cache: how frames reach a peer that did not just send one, such as an executor that waits for a task. An entry is
 * learned from a datagram that only the peer itself can have sent (`is_genuine`): frames go back where it came from, with our
 * address that it was sent to as their source. That is cheaper than asking the kernel's routes and neighbours, works where
 * forwarding is not allowed, and agrees with how XDP answers. tc.h says what happens to a peer that has no entry.
 *
 * All functions here are called with the lock held.
 */
#ifndef MIDFLIGHT_NEXT_HOPS_H
#define MIDFLIGHT_NEXT_HOPS_H

#include "core.h"

#define HOP_PLACES 4 /* entries in a row that may hold the next hop to one peer; a hash of its address names the first */

/* Multiplications by a secret odd number, of whose product the highest bits count. The salt goes into each part of the address: whoever
 * does not know it cannot balance a change in one part by one in another, and so cannot choose addresses that collide. The hash of a
 * replica is on the longest chain of operations that wait for one another, so it has to be short. */
MF_INLINE uint64_t hop_hash(const struct mf_address MF_FAR *peer)
{
    uint64_t salt = MF_CONTROL->next_hop_salt, odd = salt | 1;
    uint64_t high = (FAR_LONG(peer->ip + 0) ^ salt) * odd;
    high = (high ^ high >> 32) * odd; /* else the highest bits of one half would balance those of the other, whatever the salt */
    return (high + FAR_LONG(peer->ip + 8) + peer->port * (odd + 2)) * odd >> (64 - MF_NEXT_HOPS_BITS);
}

MF_INLINE struct mf_next_hop MF_FAR *hop_place(uint64_t hash, uint32_t k)
{
    return (struct mf_next_hop MF_FAR *)(uintptr_t)MF_NEXT_HOPS_AT + ((hash + k) & (MF_NEXT_HOPS - 1));
}

/* The next hop to this peer, or null. */
MF_INLINE struct mf_next_hop MF_FAR *find_hop(const struct mf_address MF_FAR *peer)
{
    uint64_t hash = hop_hash(peer);
    for (uint32_t k = MF_ZERO; MF_LOOP(k < HOP_PLACES); k++) {
        struct mf_next_hop MF_FAR *hop = hop_place(hash, k);
        if (hop->interface && mf_address_equal(&hop->peer, peer))
            return hop;
    }
    return 0;
}

MF_INLINE void copy_hop(struct mf_next_hop MF_FAR *to, const struct mf_next_hop MF_FAR *from)
{
    _Pragma("unroll") for (uint32_t i = 0; i < sizeof(*to); i += sizeof(mf_long))
        FAR_LONG((uint8_t MF_FAR *)to + i) = FAR_LONG((uint8_t MF_FAR *)from + i);
}

/* The entry to use for this peer: its own, else the first empty one, else the first, whose peer then is forgotten. */
MF_INLINE struct mf_next_hop MF_FAR *place_of_hop(const struct mf_address MF_FAR *peer)
{
    struct mf_next_hop MF_FAR *known = find_hop(peer);
    if (known)
        return known;
    uint64_t hash = hop_hash(peer);
    for (uint32_t k = MF_ZERO; MF_LOOP(k < HOP_PLACES); k++)
        if (!hop_place(hash, k)->interface)
            return hop_place(hash, k);
    return hop_place(hash, 0);
}

/* Copies the next hop to this peer to `to`; 0 where it is not known. */
MF_INLINE int knows_hop(const struct mf_address MF_FAR *peer, struct mf_next_hop MF_FAR *to)
{
    const struct mf_next_hop MF_FAR *found = find_hop(peer);
    if (found)
        copy_hop(to, found);
    return found != 0;
}

/* Gives the program the datagram in the scratch area, which came in a frame. */
MF_INLINE void take_from_frame(struct mf_scratch MF_FAR *scratch)
{
    scratch->verdict = take(time_for(scratch->data), &scratch->in, &scratch->out);
    if (scratch->out.is_genuine || MF_MUTANT(65)) /* planted bug: any datagram teaches the next hop to its sender */
        copy_hop(place_of_hop(&scratch->back.peer), &scratch->back);
}

/* The same for a datagram that came by the process's socket. If it is genuine, the socket is the path to its sender now, and an
 * older entry would lead elsewhere. */
MF_INLINE mf_verdict take_from_socket(struct mf_scratch MF_FAR *scratch)
{
    mf_verdict verdict = take(now_ns(), &scratch->in, &scratch->out);
    if (scratch->out.is_genuine && !MF_MUTANT(66)) { /* planted bug: who comes by the socket now is still sent frames */
        struct mf_next_hop MF_FAR *hop = find_hop(&scratch->in.from);
        if (hop)
            hop->interface = 0;
    }
    return verdict;
}

#endif
