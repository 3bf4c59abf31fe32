/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Replica groups: the servers of a key, filled by the controller's orders (select_order.h). A group is never changed or removed (N3), and
 * its servers keep their numbers.
 */
#ifndef MIDFLIGHT_CACHE_SELECT_GROUPS_H
#define MIDFLIGHT_CACHE_SELECT_GROUPS_H

#include "state.h"

MF_INLINE struct chosen_server *server_at(struct mf_cache *s, uint32_t number)
{
    return (struct chosen_server *)((uint8_t *)s + s->selection.servers_at) + number;
}

MF_INLINE void add_outstanding(struct chosen_server *server, uint32_t more)
{
    server->outstanding += more;
    server->score = 0;
}

MF_INLINE uint32_t *index_at(struct mf_cache *s, uint64_t i)
{
    return (uint32_t *)((uint8_t *)s + s->selection.index_at) + (i & s->selection.index_mask);
}

MF_INLINE struct replica_group *replica_group_at(struct mf_cache *s, uint64_t i)
{
    return (struct replica_group *)((uint8_t *)s + s->selection.groups_at) + (i & s->selection.groups_mask);
}

/* The group with this id, else a free place for one, else 0. */
MF_INLINE struct replica_group *replica_group_or_place(struct mf_cache *s, uint32_t id)
{
    uint64_t at = mf_hash(s->place_key[0] ^ id);
    for (uint32_t i = MF_ZERO; MF_LOOP(i < FOUND_NEAR); i++) {
        struct replica_group *group = replica_group_at(s, at + i);
        if (MF_LIKELY(group->id == id) || group->count == 0)
            return group;
    }
    return 0;
}

MF_INLINE struct replica_group *find_replica_group(struct mf_cache *s, uint32_t id)
{
    struct replica_group *group = replica_group_or_place(s, id);
    return group && group->count ? group : 0;
}

/* Position for the number of the server at this address; 0: all near its hash are in use. */
MF_INLINE uint32_t *server_place(struct mf_cache *s, const struct mf_address *address)
{
    uint64_t at = hash_address(s, address, address->port);
    for (uint32_t i = MF_ZERO; MF_LOOP(i < FOUND_NEAR); i++) {
        uint32_t *place = index_at(s, at + i);
        if (*place == 0 || mf_address_equal(&server_at(s, *place - 1)->address, address))
            return place;
    }
    return 0;
}

#endif
