/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The controller's orders to an operator that selects itself: replica groups, and the number of selectors. */
#ifndef MIDFLIGHT_CACHE_SELECT_ORDER_H
#define MIDFLIGHT_CACHE_SELECT_ORDER_H

#include "select_groups.h"

MF_INLINE int is_in_group(const struct replica_group *group, uint32_t number)
{
    for (uint32_t i = MF_ZERO; MF_LOOP(i < group->count && i < MF_CANDIDATES_MAX); i++)
        if (group->server[i] == number)
            return 1;
    return 0;
}

/* Whether an order has one to MF_CANDIDATES_MAX different servers. */
MF_INLINE int are_candidates(const struct mf_cache_order *order)
{
    if (order->count == 0 || order->count > MF_CANDIDATES_MAX)
        return 0;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < order->count); i++) {
        if (order->servers[i].port == 0)
            return 0;
        for (uint32_t k = MF_ZERO; MF_LOOP(k < i); k++)
            if (mf_address_equal(&order->servers[i], &order->servers[k]))
                return 0;
    }
    return 1;
}

/* Whether a group has exactly an order's servers: all are different, so it suffices that the group contains each. */
MF_INLINE int has_servers(struct mf_cache *s, const struct replica_group *group, const struct mf_cache_order *order)
{
    if (group->count != order->count)
        return 0;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < order->count && i < MF_CANDIDATES_MAX); i++) {
        const uint32_t *place = server_place(s, &order->servers[i]);
        if (place == 0 || *place == 0 || !is_in_group(group, *place - 1))
            return 0;
    }
    return 1;
}

MF_INLINE uint32_t count_unknown(struct mf_cache *s, const struct mf_cache_order *order)
{
    uint32_t unknown = 0;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < order->count && i < MF_CANDIDATES_MAX); i++) {
        const uint32_t *place = server_place(s, &order->servers[i]);
        unknown += place == 0 || *place == 0;
    }
    return unknown;
}

/* Adds a server, numbering it if new, to a group with `count` servers. 0: no room. */
MF_INLINE int put_server(struct mf_cache *s, struct replica_group *group, uint32_t count, const struct mf_address *address)
{
    uint32_t *place = server_place(s, address), at = count;
    if (place == 0)
        return 0;
    if (*place == 0) {
        *place = ++s->selection.servers;
        MF_COPY(&server_at(s, *place - 1)->address, address);
        server_at(s, *place - 1)->address.reserved = 0;
    }
    uint16_t number = (uint16_t)(*place - 1);
    for (; MF_LOOP(at > 0 && group->server[at - 1] > number); at--)
        group->server[at] = group->server[at - 1];
    group->server[at] = number;
    return 1;
}

/* Adds a group; repeating it changes nothing. */
MF_RARE uint32_t set_replica_group(struct mf_cache *s MF_IN_ARENA, const struct mf_cache_order *order MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(order);
    struct selection *selection = &s->selection;
    if (selection->kind == MF_SELECT_NONE || order->number >> 24 != 0 || !are_candidates(order))
        return MF_RULE_BAD;
    struct replica_group *group = replica_group_or_place(s, order->number);
    if (group && group->count)
        return has_servers(s, group, order) ? MF_RULE_DONE : MF_RULE_BAD;
    if (group == 0 || selection->groups >= selection->groups_max ||
        selection->servers + count_unknown(s, order) > selection->servers_max)
        return MF_RULE_NO_ROOM;
    /* A group is not found before it has a count. */
    for (uint32_t i = MF_ZERO; MF_LOOP(i < order->count && i < MF_CANDIDATES_MAX); i++)
        if (!put_server(s, group, i, &order->servers[i]))
            return MF_RULE_NO_ROOM;
    group->id = order->number;
    group->count = order->count;
    selection->groups++;
    return MF_RULE_DONE;
}

MF_INLINE uint32_t set_selectors(struct mf_cache *s, const struct mf_cache_order *order)
{
    if (s->selection.kind == MF_SELECT_NONE || order->number == 0 || order->number > MF_SELECTORS_MAX)
        return MF_RULE_BAD;
    s->selection.selectors = order->number;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < s->selection.servers); i++)
        server_at(s, i)->score = 0;
    return MF_RULE_DONE;
}

#endif
