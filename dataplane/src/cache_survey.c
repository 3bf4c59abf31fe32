// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The survey: traffic groups, RSNodes, and, if the operator chooses servers without a selector, its servers. In the kernel the state may
 * change during the copy, so an index read from the state is never used to access it. Not built for the kernel.
 */
#include "cache/select_table.h"
#include "shared/survey.h"

uint32_t mf_cache_survey_groups(const struct mf_cache *cache, uint32_t *next, struct mf_surveyed_group *found)
{
    struct mf_cache *s = (struct mf_cache *)cache; /* for the accessors; nothing is written */
    uint32_t first = *next, visited = visit(next, s->groups), count = 0;
    for (uint32_t i = first; i < first + visited; i++) {
        const struct group *group = group_at(s, i);
        if (group->rsnode == MF_NO_RSNODE)
            continue;
        struct mf_surveyed_group *to = &found[count++];
        to->answers = 0;
        for (uint32_t tier = 0; tier < MF_TIERS_MAX; tier++)
            to->answers += group->counts[tier];
        to->group = (uint16_t)i;
        to->rsnode = (uint16_t)group->rsnode;
        to->reserved = 0;
    }
    return count;
}

uint32_t mf_cache_survey_rsnodes(const struct mf_cache *cache, uint32_t *next, struct mf_surveyed_rsnode *found)
{
    struct mf_cache *s = (struct mf_cache *)cache;
    uint32_t first = *next, visited = visit(next, s->rsnodes), count = 0;
    for (uint32_t id = first + 1; id < first + 1 + visited; id++) {
        const struct rsnode *rsnode = rsnode_at(s, id);
        if (!rsnode->is_here && rsnode->address.port == 0)
            continue;
        struct mf_surveyed_rsnode *to = &found[count++];
        to->address = rsnode->address;
        to->id = (uint16_t)id;
        to->is_here = rsnode->is_here != 0;
    }
    return count;
}

uint32_t mf_cache_survey_servers(const struct mf_cache *cache, uint32_t *next, struct mf_surveyed_server *found)
{
    struct mf_cache *s = (struct mf_cache *)cache;
    uint32_t known = s->selection.servers < s->selection.servers_max ? s->selection.servers : s->selection.servers_max;
    uint32_t first = *next, visited = visit(next, known), count = 0;
    for (uint32_t i = first; i < first + visited; i++) {
        const struct chosen_server *server = server_at(s, i);
        struct mf_surveyed_server *to = &found[count++];
        to->known_until_ns = server->known_until_ns;
        to->response = server->response;
        to->service = server->service;
        to->queue = server->queue;
        to->address = server->address;
        to->outstanding = server->outstanding;
    }
    return count;
}
