/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* The operator's orders: adds a replica set, clearing its key groups in steps; removes or changes one. */
#ifndef MIDFLIGHT_STORE_ORDER_H
#define MIDFLIGHT_STORE_ORDER_H

#include "state.h"

MF_INLINE uint32_t order_done(struct mf_store_order *order, enum mf_set_outcome outcome)
{
    order->outcome = (uint8_t)outcome;
    return 1;
}

MF_INLINE int is_within_bounds(const struct mf_store *s, const struct mf_store_order *order)
{
    return order->lease_ns <= MF_LEASE_MAX_NS && order->kgroup_bits <= s->kgroup_bits &&
           order->reply_check < MF_REPLY_END && order->policy <= MF_POLICY_ALL;
}

MF_INLINE uint32_t free_place(struct mf_store *s)
{
    uint32_t place = MF_ZERO;
    while (MF_LOOP(place < s->sets_max && place < MF_SETS_MAX && s->sets[place].incarnation != 0))
        place++;
    return place < s->sets_max ? place : MF_SETS_MAX;
}

MF_INLINE uint64_t lease_of(const struct mf_store *s, const struct mf_store_order *order)
{
    return order->lease_ns ? order->lease_ns : s->lease_ns;
}

/* The settings that may change while the set serves. */
MF_INLINE void set_up(struct set *set, const struct mf_store_order *order)
{
    set->reply_check = order->reply_check;
    set->policy = order->policy;
    weigh(set);
    for (uint32_t i = MF_ZERO; MF_LOOP(i < MF_REPLICAS_MAX); i++)
        MF_COPY(&set->named[i], &order->replicas[i]);
}

/* Fills a place whose memory is clear. Counts of packets and sessions start at 0. */
MF_INLINE void fill_place(struct mf_store *s, const struct mf_store_order *order, uint32_t place)
{
    struct set *set = &s->sets[place];
    uint32_t epoch = (uint32_t)order->incarnation;
    mf_word *words = (mf_word *)set;
    for (uint32_t i = MF_ZERO; MF_LOOP(i < sizeof(*set) / sizeof(*words)); i++)
        words[i] = 0;
    set->incarnation = order->incarnation;
    set->epoch = mf_net32(epoch ? epoch : 1);
    set->lease_ns = lease_of(s, order);
    set->number = set->stats.set = order->set;
    set->stats.is_used = 1;
    set->kgroup_bits = order->kgroup_bits;
    set_up(set, order);
    s->places[order->set] = (uint8_t)(place + 1);
}

/* If another order takes the place between two steps, this one starts over with another place. */
MF_INLINE uint32_t add_set(struct mf_store *s, struct mf_store_order *order)
{
    if (order->incarnation == 0 || !is_within_bounds(s, order))
        return order_done(order, MF_SET_BAD);
    if (find_set(s, order->set))
        return order_done(order, MF_SET_EXISTS);
    uint32_t place = free_place(s), kgroups = 1u << order->kgroup_bits;
    if (place == MF_SETS_MAX)
        return order_done(order, MF_SET_NO_ROOM);
    if (place != order->place || order->next > kgroups)
        order->next = 0;
    order->place = (uint8_t)place;
    uint32_t end = order->next + MF_ORDER_KGROUPS;
    for (uint32_t i = order->next; MF_LOOP(i < kgroups && i < end); i++) {
        struct kgroup *group = kgroup_at(s, place, i);
        group->sid = group->seq = group->index = 0;
        group->replicas = group->is_stable = 0;
    }
    order->next = end;
    if (end < kgroups)
        return 0;
    fill_place(s, order, place);
    return order_done(order, MF_SET_DONE);
}

/* The session continues, because replicas rely on its lease and clients on its key groups. */
MF_INLINE uint32_t change_set(struct mf_store *s, struct mf_store_order *order)
{
    struct set *set = find_set(s, order->set);
    if (!is_within_bounds(s, order))
        return order_done(order, MF_SET_BAD);
    if (set == 0)
        return order_done(order, MF_SET_UNKNOWN);
    if (set->lease_ns != lease_of(s, order) || set->kgroup_bits != order->kgroup_bits)
        return order_done(order, MF_SET_FROZEN);
    set_up(set, order);
    return order_done(order, MF_SET_DONE);
}

MF_INLINE uint32_t remove_set(struct mf_store *s, struct mf_store_order *order)
{
    struct set *set = find_set(s, order->set);
    if (set == 0)
        return order_done(order, MF_SET_UNKNOWN);
    set->incarnation = 0;
    set->stats.is_used = 0;
    s->places[order->set] = 0;
    return order_done(order, MF_SET_DONE);
}

#endif
