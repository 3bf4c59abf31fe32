/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The controller's orders: sets and removes rules. */
#ifndef MIDFLIGHT_CACHE_ORDER_H
#define MIDFLIGHT_CACHE_ORDER_H

#include "select_order.h"

MF_INLINE uint32_t order_done(struct mf_cache_order *order, uint32_t outcome)
{
    order->outcome = (uint8_t)outcome;
    return 1;
}

/* A free or GONE place for a new address. 0: all places near its hash are in use. */
MF_INLINE struct place *new_place(struct mf_cache *s, const struct mf_address *address)
{
    uint32_t at = (uint32_t)hash_address(s, address, address->port);
    for (uint32_t i = MF_ZERO; MF_LOOP(i < PLACES_NEAR); i++) {
        struct place *place = place_at(s, (at + i) & s->place_mask);
        if (place->kind == PLACE_NONE || place->kind == PLACE_GONE)
            return place;
    }
    return 0;
}

/* A selector must be neither server nor operator, which would return each request sent to it. */
MF_INLINE int is_selector(const struct mf_cache *s, const struct mf_address *address)
{
    return s->selector.port != 0 && mf_address_equal(&s->selector, address);
}

MF_INLINE uint32_t set_place(struct mf_cache *s, struct mf_cache_order *order, uint32_t kind)
{
    struct place *place = find_place(s, &order->address, order->address.port);
    /* A host is looked up by port 0, all others by their own. */
    if ((kind == PLACE_HOST) != (order->address.port == 0))
        return order_done(order, MF_RULE_BAD);
    if (kind != PLACE_OPERATOR && order->rack >= s->racks)
        return order_done(order, MF_RULE_BAD);
    if (is_selector(s, &order->address))
        return order_done(order, MF_RULE_BAD);
    if (kind == PLACE_HOST && order->group >= s->groups && order->group != MF_NO_GROUP)
        return order_done(order, MF_RULE_BAD);
    if (place == 0) {
        place = s->places < s->places_max ? new_place(s, &order->address) : 0;
        if (place == 0)
            return order_done(order, MF_RULE_NO_ROOM);
        s->places++;
    }
    MF_COPY(&place->address, &order->address);
    place->rack = order->rack;
    place->group = order->group;
    place->kind = kind;
    return order_done(order, MF_RULE_DONE);
}

/* Removes GONE marks before an unused place, which hide nothing: an unknown address is refused sooner without them. */
MF_INLINE void forget_gone(struct mf_cache *s, const struct place *place)
{
    uint32_t at = (uint32_t)(place - place_at(s, 0));
    if (place_at(s, (at + 1) & s->place_mask)->kind != PLACE_NONE)
        return;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < PLACES_NEAR); i++) {
        struct place *before = place_at(s, (at - i) & s->place_mask);
        if (before->kind != PLACE_GONE)
            return;
        before->kind = PLACE_NONE;
    }
}

MF_INLINE uint32_t remove_place(struct mf_cache *s, struct mf_cache_order *order)
{
    struct place *place = find_place(s, &order->address, order->address.port);
    if (place) {
        place->kind = PLACE_GONE;
        s->places--;
        forget_gone(s, place);
    }
    return order_done(order, MF_RULE_DONE);
}

MF_INLINE uint32_t set_own(struct mf_cache *s, struct mf_cache_order *order)
{
    if (order->rack >= s->racks && order->rack != MF_NO_RACK)
        return order_done(order, MF_RULE_BAD);
    if (order->address.port != 0 && find_place(s, &order->address, order->address.port) != 0)
        return order_done(order, MF_RULE_BAD);
    s->rack = order->rack;
    MF_COPY(&s->selector, &order->address);
    return order_done(order, MF_RULE_DONE);
}

MF_INLINE uint32_t set_rack(struct mf_cache *s, struct mf_cache_order *order)
{
    if (order->rack >= s->racks)
        return order_done(order, MF_RULE_BAD);
    struct rack *rack = rack_at(s, order->rack);
    MF_COPY(&rack->address, &order->address);
    rack->marker = mf_net32(order->marker);
    return order_done(order, MF_RULE_DONE);
}

MF_INLINE uint32_t set_rsnode(struct mf_cache *s, struct mf_cache_order *order, uint32_t is_here)
{
    if (order->rsnode == MF_NO_RSNODE || order->rsnode > s->rsnodes)
        return order_done(order, MF_RULE_BAD);
    struct rsnode *rsnode = rsnode_at(s, order->rsnode);
    MF_COPY(&rsnode->address, &order->address);
    rsnode->is_here = is_here;
    return order_done(order, MF_RULE_DONE);
}

MF_INLINE uint32_t set_group(struct mf_cache *s, struct mf_cache_order *order)
{
    uint32_t is_id = order->rsnode <= s->rsnodes || order->rsnode == MF_ILLEGAL_RSNODE;
    if (order->group >= s->groups || !is_id)
        return order_done(order, MF_RULE_BAD);
    group_at(s, order->group)->rsnode = order->rsnode;
    return order_done(order, MF_RULE_DONE);
}

MF_INLINE uint32_t read_counts(struct mf_cache *s, struct mf_cache_order *order)
{
    if (order->group >= s->groups)
        return order_done(order, MF_RULE_BAD);
    const struct group *group = group_at(s, order->group);
    for (uint32_t i = MF_ZERO; MF_LOOP(i < MF_TIERS_MAX); i++)
        order->counts[i] = group->counts[i];
    return order_done(order, MF_RULE_DONE);
}

MF_INLINE uint32_t obey(struct mf_cache *s, struct mf_cache_order *order)
{
    switch (order->what) {
    case MF_RULE_OWN:
        return set_own(s, order);
    case MF_RULE_RACK:
        return set_rack(s, order);
    case MF_RULE_HOST:
        return set_place(s, order, PLACE_HOST);
    case MF_RULE_SERVER:
        return set_place(s, order, PLACE_SERVER);
    case MF_RULE_OPERATOR:
        return set_place(s, order, PLACE_OPERATOR);
    case MF_RULE_GONE:
        return remove_place(s, order);
    case MF_RULE_RSNODE:
        return set_rsnode(s, order, 0);
    case MF_RULE_SERVE:
        return set_rsnode(s, order, 1);
    case MF_RULE_GROUP:
        return set_group(s, order);
    case MF_RULE_COUNTS:
        return read_counts(s, order);
    case MF_RULE_REPLICAS:
        return order_done(order, set_replica_group(s, order));
    case MF_RULE_SELECTORS:
        return order_done(order, set_selectors(s, order));
    default:
        return order_done(order, MF_RULE_BAD);
    }
}

#endif
