/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* For tests: checks the consistency of an operator's selection tables. Not built for the kernel. */
#ifndef MIDFLIGHT_CACHE_SELECT_CHECK_H
#define MIDFLIGHT_CACHE_SELECT_CHECK_H

#include "select_score.h"
#include "select_table.h"

/* Each server is found by its address. */
static int check_servers(struct mf_cache *s)
{
    uint64_t outstanding = 0;
    CHECK(s->selection.servers <= s->selection.servers_max);
    for (uint32_t number = 0; number < s->selection.servers; number++) {
        const struct chosen_server *server = server_at(s, number);
        const uint32_t *place = server_place(s, &server->address);
        CHECK(place != 0 && *place == number + 1);
        CHECK(server->address.port != 0 && server->has_status <= 1);
        CHECK(server->score == 0 || server->score == c3_score(requests_of(s, server), server));
        outstanding += server->outstanding;
    }
    CHECK(outstanding == s->stats.under_way);
    return 0;
}

/* Each group is found by its id, and has different servers. */
static int check_replica_groups(struct mf_cache *s)
{
    uint32_t groups = 0;
    for (uint32_t i = 0; i <= s->selection.groups_mask; i++) {
        const struct replica_group *group = replica_group_at(s, i);
        if (group->count == 0)
            continue;
        groups++;
        CHECK(group->count <= MF_CANDIDATES_MAX && find_replica_group(s, group->id) == group);
        for (uint32_t k = 0; k < group->count; k++)
            CHECK(group->server[k] < s->selection.servers && (k == 0 || group->server[k - 1] < group->server[k]));
    }
    CHECK(groups == s->selection.groups && groups <= s->selection.groups_max);
    return 0;
}

/* Each slot is free, or in the list by age. */
static int check_slots(struct mf_cache *s)
{
    const struct selection *selection = &s->selection;
    uint32_t used = 0, unused = 0, before = NO_SLOT;
    for (uint32_t slot = selection->oldest; slot != NO_SLOT; slot = slot_at(s, slot)->after, used++) {
        const struct under_way *entry = slot_at(s, slot);
        CHECK(used < selection->slots && entry->is_used == 1 && entry->before == before);
        CHECK(before == NO_SLOT || slot_at(s, before)->sent_ns <= entry->sent_ns);
        CHECK((entry->retained & (selection->slots - 1)) == slot && entry->server < selection->servers);
        before = slot;
    }
    CHECK(selection->newest == before && used == s->stats.under_way);
    for (uint32_t slot = selection->free; slot != NO_SLOT; slot = slot_at(s, slot)->after, unused++) {
        CHECK(unused < selection->slots && slot_at(s, slot)->is_used == 0);
        CHECK(slot_at(s, slot)->after != NO_SLOT || selection->free_last == slot);
    }
    CHECK(used + unused == selection->slots);
    return 0;
}

/* Each selected request was answered, has expired, or is in flight. */
static int check_selection_counts(const struct mf_cache *s)
{
    const struct mf_cache_stats *stats = &s->stats;
    CHECK(stats->selected == stats->untracked + stats->answered + stats->expired + stats->under_way);
    CHECK(stats->answered + stats->unmatched <= stats->packets[MF_KIND_RESPONSE] && stats->copied == 0);
    CHECK(stats->statuses_invalid + stats->statuses_outdated + stats->without_status <= stats->answered);
    return 0;
}

static int check_selection(struct mf_cache *s)
{
    if (s->selection.kind == MF_SELECT_NONE)
        return 0;
    int line = check_servers(s);
    line = line ? line : check_replica_groups(s);
    line = line ? line : check_slots(s);
    return line ? line : check_selection_counts(s);
}

#endif
