/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The next hop cache: how to reach a peer that did not just send a frame, such as an executor with a parked slot. An entry is learned from
 * a datagram that only the peer can have sent (`is_genuine`): frames go back where it came from, with the address that it was sent to as
 * source. That is cheaper than asking the kernel's routes and neighbours, works without forwarding, and agrees with XDP's answers. For a
 * peer without an entry see tc.h.
 *
 * All functions here need the lock.
 */
#ifndef MIDFLIGHT_NEXT_HOPS_H
#define MIDFLIGHT_NEXT_HOPS_H

#include "core.h"

#define HOP_PLACES 4 /* consecutive entries for one peer, starting at the hash of its address */

/* Multiplications by a secret odd number, of which the highest product bits count. Each part of the address is salted: without the salt, an
 * attacker cannot balance a change in one part by one in another, and so cannot choose addresses that collide. It must be short, because a
 * replica's hash is on the critical path. */
MF_INLINE uint64_t hop_hash(const struct mf_address MF_FAR *peer)
{
    uint64_t salt = MF_CONTROL->next_hop_salt, odd = salt | 1;
    uint64_t high = (FAR_LONG(peer->ip + 0) ^ salt) * odd;
    high = (high ^ high >> 32) * odd; /* otherwise the highest bits of one half could balance those of the other, whatever the salt */
    return (high + FAR_LONG(peer->ip + 8) + peer->port * (odd + 2)) * odd >> (64 - MF_NEXT_HOPS_BITS);
}

MF_INLINE struct mf_next_hop MF_FAR *hop_place(uint64_t hash, uint32_t k)
{
    return (struct mf_next_hop MF_FAR *)(uintptr_t)MF_NEXT_HOPS_AT + ((hash + k) & (MF_NEXT_HOPS - 1));
}

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

/* The entry for this peer: its own, else the first empty one, else the first, whose peer is evicted. */
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

/* Copies the next hop to this peer to `to`; 0 if unknown. */
MF_INLINE int knows_hop(const struct mf_address MF_FAR *peer, struct mf_next_hop MF_FAR *to)
{
    const struct mf_next_hop MF_FAR *found = find_hop(peer);
    if (found)
        copy_hop(to, found);
    return found != 0;
}

/* Passes the datagram in the scratch area, which came in a frame, to the program. */
MF_INLINE void take_from_frame(struct mf_scratch MF_FAR *scratch)
{
    scratch->verdict = take(time_for(scratch->data), &scratch->in, &scratch->out);
    if (scratch->out.is_genuine || MF_MUTANT(65)) /* planted bug: any datagram teaches the next hop to its sender */
        copy_hop(place_of_hop(&scratch->back.peer), &scratch->back);
}

/* The same for a datagram from the process's socket. If it is genuine, its sender is now reached by the socket, and the cached entry is
 * outdated. */
MF_INLINE mf_verdict take_from_socket(struct mf_scratch MF_FAR *scratch)
{
    mf_verdict verdict = take(now_ns(), &scratch->in, &scratch->out);
    if (scratch->out.is_genuine && !MF_MUTANT(66)) { /* planted bug: keeps the outdated entry */
        struct mf_next_hop MF_FAR *hop = find_hop(&scratch->in.from);
        if (hop)
            hop->interface = 0;
    }
    return verdict;
}

#endif
