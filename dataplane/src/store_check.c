// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* For tests and fuzzers: checks the consistency of all replica sets. Not built for the kernel. */
#include "store/cookie.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    } while (0)

/* Checks that every key group belongs to the session, and the number of unstable ones. */
static int check_kgroups(struct mf_store *s, uint32_t place)
{
    const struct set *set = &s->sets[place];
    uint32_t unstable = 0;
    for (uint32_t i = 0; i < 1u << set->kgroup_bits; i++) {
        const struct kgroup *group = kgroup_at(s, place, i);
        CHECK(group->sid <= set->sid);
        if (group->sid == 0 || group->sid != set->sid)
            continue;
        CHECK(group->seq <= set->seq && group->index >= set->start);
        CHECK(group->is_stable <= 1 && (group->is_stable || group->seq > 0));
        unstable += !group->is_stable;
    }
    CHECK(unstable == set->stats.unstable);
    return 0;
}

/* Checks that a session has a leader, and a lease that a HEARTBEAT can have set. */
static int check_session(const struct set *set)
{
    uint64_t least = UINT64_MAX;
    uint32_t weight = 0;
    CHECK(set->answered_seq <= set->seq);
    CHECK(set->sid != 0 || (set->lease_ends_ns == 0 && set->seq == 0 && set->stats.sessions == 0));
    CHECK(set->sid == 0 || set->replicas[set->leader].address.port != 0);
    CHECK(set->sid > set->ended || set->lease_ends_ns == 0);
    for (uint32_t slot = 0; slot < MF_REPLICAS_MAX; slot++) {
        const struct replica *replica = &set->replicas[slot];
        CHECK((set->probes >> 8 * slot & 0xff) <= MF_PROBES);
        weight += replica->weight;
        if (replica->weight && replica->matched < least)
            least = replica->matched;
        uint32_t counts = set->policy & MF_POLICY_LOAD_AWARE ? replica->given : replica->given != 0;
        CHECK(replica->given == 0 || replica->address.port != 0);
        CHECK(replica->weight == counts);
        CHECK(slot < set->slots || set->replicas[slot].address.port == 0);
    }
    CHECK(weight == set->weight && least == set->matched);
    return 0;
}

static int check_set(struct mf_store *s, uint32_t place)
{
    const struct set *set = &s->sets[place];
    CHECK(set->stats.is_used == (set->incarnation != 0));
    if (set->incarnation == 0)
        return 0;
    CHECK(place < s->sets_max && s->places[set->number] == place + 1 && set->stats.set == set->number);
    CHECK(set->epoch != 0 && set->kgroup_bits <= s->kgroup_bits);
    int line = check_session(set);
    return line ? line : check_kgroups(s, place);
}

/* Counts the numbers with a set. Most words of the table are 0. */
static uint32_t count_numbers(const struct mf_store *s)
{
    const mf_word *words = (const mf_word *)s->places;
    uint32_t numbers = 0;
    for (uint32_t i = 0; i < SET_NUMBERS / sizeof(*words); i++)
        for (uint32_t byte = 0; words[i] && byte < sizeof(*words); byte++)
            numbers += (words[i] >> 8 * byte & 0xff) != 0;
    return numbers;
}

/* Checks the place and cookie of each known client. */
static int check_known(struct mf_store *s)
{
    for (uint32_t i = 0; i < KNOWN_CLIENTS; i++) {
        const struct known_client *known = &s->known[i];
        const struct mf_datagram of_client = {.from = known->from};
        if (known->until_ns == 0)
            continue;
        CHECK(known_place(s, &known->from) == known && known->until_ns % s->cookie_ns == 0);
        CHECK(known->cookie == cookie_of(s, known->until_ns / s->cookie_ns - 2, &of_client));
    }
    return 0;
}

int mf_store_check(const struct mf_store *store)
{
    /* The cast drops `const` for the engine's accessors; nothing is written. */
    struct mf_store *s = (struct mf_store *)store;
    uint32_t used = 0;
    for (uint32_t place = 0; place < MF_SETS_MAX; place++) {
        int line = check_set(s, place);
        if (line)
            return line;
        used += s->sets[place].incarnation != 0;
    }
    CHECK(used == count_numbers(s));
    return check_known(s);
}

/* For a Rust test that compares the layouts. */
void mf_store_layout(uint64_t layout[12])
{
    const uint64_t here[12] = {
        sizeof(struct mf_store_config), sizeof(struct mf_store_stats), sizeof(struct mf_set_stats),
        sizeof(struct mf_store_order),  MF_STORE_OP_END,               MF_SETS_MAX,
        MF_LEASE_MAX_NS,                MF_ORDER_KGROUPS,              MF_ORDER_BYTES,
        MF_KGROUP_BITS_MAX,             sizeof(struct mf_surveyed_set), sizeof(struct mf_surveyed_replica),
    };
    __builtin_memcpy(layout, here, sizeof(here));
}
