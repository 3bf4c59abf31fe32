// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The survey: slots, clients and tasks. In the kernel the state may change during the copy, so nothing here follows an index that it reads.
 * Not built for the kernel.
 */
#include "shared/survey.h"
#include "tasks/state.h"

uint32_t mf_tasks_survey_slots(const struct mf_tasks *tasks, uint32_t *next, struct mf_surveyed_slot *found)
{
    struct mf_tasks *s = (struct mf_tasks *)tasks; /* for the accessors; nothing is written */
    uint32_t first = *next, visited = visit(next, s->slots.fresh), count = 0;
    for (uint32_t n = first; n < first + visited; n++) {
        uint32_t i = n + 1;
        const struct slot *slot = slot_at(s, i);
        if (slot->state == SLOT_VACANT)
            continue;
        struct mf_surveyed_slot *to = &found[count++];
        to->executor = slot_owner_at(s, i)->executor;
        to->heard_ns = slot->heard_ns;
        to->assigned_ns = slot->assigned_ns;
        to->address = slot->address;
        to->state = slot->state;
        to->resources = slot->resources;
        to->reserved[0] = to->reserved[1] = 0;
    }
    return count;
}

uint32_t mf_tasks_survey_clients(const struct mf_tasks *tasks, uint32_t *next,
                                 struct mf_surveyed_client *found)
{
    struct mf_tasks *s = (struct mf_tasks *)tasks;
    uint32_t first = *next, visited = visit(next, s->clients.fresh), count = 0;
    for (uint32_t n = first; n < first + visited; n++) {
        uint32_t i = s->first_client + n * CLIENT_LINES;
        const struct client *c = client_at(s, i);
        if (!c->known)
            continue;
        struct mf_surveyed_client *to = &found[count++];
        to->identity = c->identity;
        to->heard_ns = c->heard_ns;
        to->address = c->address;
        to->number = i;
        to->open = c->open;
        to->uid = mf_net32(c->uid);
    }
    return count;
}

uint32_t mf_tasks_survey_records(const struct mf_tasks *tasks, uint32_t *next,
                                 struct mf_surveyed_task *found)
{
    struct mf_tasks *s = (struct mf_tasks *)tasks;
    uint32_t first = *next, visited = visit(next, s->fresh_records), count = 0;
    for (uint32_t n = first; n < first + visited; n++) {
        const struct record *r = record_at(s, FIRST_RECORD + n);
        if (state_of(r) == RECORD_FREE)
            continue;
        struct mf_surveyed_task *to = &found[count++];
        to->accepted_ns = key_of(r) << KEY_SHIFT;
        to->client = r->client;
        to->jid = mf_net32(r->jid);
        to->is_held = (uint8_t)is_held(r);
        to->level = r->info.priority;
        to->resources = r->info.resources;
        to->attempt = r->info.attempt;
        to->reserved = 0;
    }
    return count;
}
