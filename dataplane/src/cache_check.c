// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* For tests: checks the consistency of all tables. Not built for the kernel. */
#include "cache/cookie.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    } while (0)

#include "cache/select_check.h"

/* Checks that each place is found by its address and is within bounds. */
static int check_places(struct mf_cache *s)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i <= s->place_mask; i++) {
        const struct place *place = place_at(s, i);
        CHECK(place->kind <= PLACE_OPERATOR);
        if (place->kind == PLACE_NONE || place->kind == PLACE_GONE)
            continue;
        used++;
        CHECK(find_place(s, &place->address, place->address.port) == place);
        CHECK((place->kind == PLACE_HOST) == (place->address.port == 0));
        CHECK(place->kind == PLACE_OPERATOR || place->rack < s->racks);
        CHECK(place->kind != PLACE_HOST || place->group < s->groups || place->group == MF_NO_GROUP);
    }
    CHECK(used == s->places && used <= s->places_max);
    return 0;
}

static int check_rules(struct mf_cache *s)
{
    CHECK(s->rack < s->racks || s->rack == MF_NO_RACK);
    CHECK(s->selector.port == 0 || find_place(s, &s->selector, s->selector.port) == 0);
    CHECK(rsnode_at(s, MF_NO_RSNODE)->is_here == 0 && rsnode_at(s, MF_NO_RSNODE)->address.port == 0);
    for (uint32_t id = 1; id <= s->rsnodes; id++)
        CHECK(rsnode_at(s, id)->is_here <= 1);
    for (uint32_t i = 0; i < s->groups; i++) {
        uint32_t rsnode = group_at(s, i)->rsnode;
        CHECK(rsnode <= s->rsnodes || rsnode == MF_ILLEGAL_RSNODE);
    }
    return 0;
}

/* Checks that the counts of outcomes add up to the packets forwarded. */
static int check_counts(const struct mf_cache *s)
{
    const struct mf_cache_stats *stats = &s->stats;
    uint64_t requests = stats->labelled + stats->degraded + stats->without_rsnode;
    CHECK(stats->copied <= stats->packets[MF_KIND_RESPONSE] && stats->not_copied <= stats->packets[MF_KIND_RESPONSE]);
    CHECK(stats->labelled <= stats->packets[MF_KIND_REQUEST] && requests <= 2 * stats->packets[MF_KIND_REQUEST]);
    CHECK(stats->selected <= stats->packets[MF_KIND_REQUEST]);
    CHECK(stats->delivered <= stats->reasons[MF_V_FORWARDED]);
    return 0;
}

/* Checks the place and cookie of each known client. */
static int check_known(struct mf_cache *s)
{
    for (uint32_t i = 0; i < KNOWN_CLIENTS; i++) {
        const struct known_client *known = &s->known[i];
        if (known->until_ns == 0)
            continue;
        CHECK(known_place(s, &known->from) == known && known->until_ns % s->cookie_ns == 0);
        CHECK(known->cookie == cookie_of(s, known->until_ns / s->cookie_ns - 2, &known->from));
    }
    return 0;
}

int mf_cache_check(const struct mf_cache *cache)
{
    /* The cast drops `const` for the engine's accessors; nothing is written. */
    struct mf_cache *s = (struct mf_cache *)cache;
    int line = check_places(s);
    line = line ? line : check_rules(s);
    line = line ? line : check_counts(s);
    line = line ? line : check_selection(s);
    return line ? line : check_known(s);
}

/* For a Rust test that compares the layouts. */
void mf_cache_layout(uint64_t layout[19])
{
    const uint64_t here[19] = {
        sizeof(struct mf_cache_config), sizeof(struct mf_cache_stats), sizeof(struct mf_cache_order),
        MF_KIND_END,                      MF_TIERS_MAX,                     MF_PLACES_MAX,
        MF_RACKS_MAX,                      MF_GROUPS_MAX,                    MF_RSNODES_MAX,
        MF_RULE_END,                       MF_SELECT_END,                    MF_SERVERS_MAX,
        MF_REPLICA_GROUPS_MAX,             MF_UNDER_WAY_MAX,                 MF_SELECTORS_MAX,
        MF_SURVEY_STEP,                    sizeof(struct mf_surveyed_group), sizeof(struct mf_surveyed_rsnode),
        sizeof(struct mf_surveyed_server),
    };
    __builtin_memcpy(layout, here, sizeof(here));
}
