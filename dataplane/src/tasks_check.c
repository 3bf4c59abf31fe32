// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* For tests and fuzzers: checks the consistency of a queue's structures. Not built for the kernel. */
#include "tasks/parking.h"
#include "tasks/queue.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    } while (0)

/* Totals of the walks so far. */
struct found {
    uint32_t queued[MF_LEVELS], queued_all, parked, busy, slots, for_place;
    int any[MF_LEVELS]; /* whether the general lists of a level have tasks */
    uint64_t open;
};

/* T3: requeued tasks come first; keys of the others ascend, except those of tasks out of patience (T19). Returns the line of a failed
 * check, or 0. */
static int check_queue_list(struct mf_tasks *s, uint32_t level, uint32_t mask, struct found *found)
{
    uint32_t number = list_of(level, mask);
    const struct queue *list = &s->queued[number];
    uint32_t before = NONE;
    uint64_t last_key = 0;
    int used = (s->queued_masks[number / GROUP] >> mask % GROUP) & 1;
    CHECK(used == (list->head != NONE));
    uint32_t second = used ? record_at(s, list->head)->next : NONE;
    CHECK(used ? s->heads[number] == rank_of(record_at(s, list->head)->stamp, mask) : s->heads[number] >= NO_TASK);
    CHECK(s->pairs[number / 2] == older(s->heads[number], s->heads[number ^ 1]));
    CHECK(second != NONE ? list->second == rank_of(record_at(s, second)->stamp, mask) : list->second >= NO_TASK);
    for (uint32_t i = list->head; i != NONE; i = record_at(s, i)->next) {
        const struct record *r = record_at(s, i);
        CHECK(i - FIRST_RECORD < s->fresh_records && state_of(r) == RECORD_QUEUED);
        CHECK(before == NONE || r->prev == before);
        CHECK(list_for(&r->info) == number);
        int gave_up = wish_at(s, i)->gave_up == key_of(r);
        CHECK(!waits_for_place(s, i));
        CHECK(was_tried(r) || gave_up || key_of(r) > last_key);
        CHECK(!was_tried(r) || last_key == 0);
        if (!was_tried(r) && !gave_up)
            last_key = key_of(r);
        found->any[level] = 1;
        CHECK(++found->queued_all <= s->queue - s->room);
        found->queued[level]++;
        before = i;
    }
    CHECK(list->tail == before);
    return 0;
}

/* T6: no parked slot could run a queued task. */
static int check_parked_list(struct mf_tasks *s, uint32_t mask, struct found *found)
{
    const struct list *list = &s->parked.lists[mask];
    uint32_t before = NONE;
    CHECK(((s->parked.masks[mask >> 6] >> (mask & 63)) & 1) == (list->head != NONE));
    CHECK(list->head == NONE || !queue_suits(s, mask));
    for (uint32_t i = list->head; i != NONE; i = slot_at(s, i)->next) {
        const struct slot *slot = slot_at(s, i);
        CHECK(i <= s->slots.fresh && slot->state == SLOT_WAITING && slot->prev == before);
        CHECK(slot->resources == mask);
        CHECK(before == NONE || slot_at(s, before)->parked_key < slot->parked_key);
        CHECK(++found->parked <= s->slots.used);
        before = i;
    }
    CHECK(list->tail == before);
    return 0;
}

/* T19: the tasks that wait for a place, by level; none was assigned before. */
static int check_waiting(struct mf_tasks *s, uint32_t number, struct found *found)
{
    const struct place *place = place_at(s, number);
    uint32_t tasks = 0;
    for (uint32_t level = 0; level < MF_LEVELS; level++) {
        uint32_t before = NONE;
        CHECK(((place->levels >> level) & 1) == (place->waiting[level].head != NONE));
        for (uint32_t i = place->waiting[level].head; i != NONE; i = record_at(s, i)->next) {
            const struct record *r = record_at(s, i);
            CHECK(i - FIRST_RECORD < s->fresh_records && state_of(r) == RECORD_QUEUED && !was_tried(r));
            CHECK(level_of(&r->info) == level && r->prev == before && wish_at(s, i)->place == number);
            CHECK(before == NONE || key_of(record_at(s, before)) < key_of(r));
            CHECK(++found->queued_all <= s->queue - s->room);
            found->queued[level]++;
            found->for_place++;
            tasks++;
            before = i;
        }
        CHECK(place->waiting[level].tail == before);
    }
    CHECK(tasks == place->tasks);
    return 0;
}

/* T19: checks that a place's parked list has exactly the parked slots of that place. */
static int check_parked_at(struct mf_tasks *s, uint32_t number)
{
    const struct place *place = place_at(s, number);
    uint32_t parked = 0, waiting = 0, slots = 0;
    for (uint32_t mask = 0; mask < MASKS; mask++) {
        const struct list *list = &place->parked.lists[mask];
        uint32_t before = NONE;
        CHECK(((place->parked.masks[mask >> 6] >> (mask & 63)) & 1) == (list->head != NONE));
        for (uint32_t i = list->head; i != NONE; i = seat_at(s, i)->next) {
            const struct slot *slot = slot_at(s, i / MF_SLOT_PLACES);
            CHECK(i / MF_SLOT_PLACES <= s->slots.fresh && slot->state == SLOT_WAITING && slot->resources == mask);
            CHECK(seat_at(s, i)->place == number && seat_at(s, i)->prev == before);
            CHECK(++parked <= s->slots.used);
            before = i;
        }
        CHECK(list->tail == before);
    }
    for (uint32_t i = 1; i <= s->slots.fresh; i++)
        for (uint32_t k = 0; k < MF_SLOT_PLACES; k++) {
            if (seat_of(s, i, k)->place != number)
                continue;
            CHECK(slot_at(s, i)->state != SLOT_VACANT && slot_at(s, i)->is_placed);
            slots++;
            waiting += slot_at(s, i)->state == SLOT_WAITING;
        }
    CHECK(parked == waiting && slots == place->slots);
    return 0;
}

/* T19: no place without slots and tasks is kept; the lists by patience have the same tasks, in the order of acceptance. */
static int check_places(struct mf_tasks *s, struct found *found)
{
    uint32_t places = 0, patient = 0;
    for (uint32_t bucket = 0; bucket <= s->place_buckets; bucket++)
        for (uint32_t i = *place_bucket_at(s, bucket); i != NONE; i = place_at(s, i)->link.next) {
            CHECK(place_at(s, i)->slots != 0 || place_at(s, i)->tasks != 0);
            CHECK(++places <= s->places.used && find_place(s, place_at(s, i)->name) == i);
            int line = check_waiting(s, i, found);
            line = line ? line : check_parked_at(s, i);
            if (line)
                return line;
        }
    for (uint32_t k = 0; k < PATIENCES; k++) {
        uint32_t before = NONE;
        for (uint32_t i = s->patience[k].head; i != NONE; i = wish_at(s, i)->next) {
            CHECK(waits_for_place(s, i) && wish_at(s, i)->patience == k + 1 && wish_at(s, i)->prev == before);
            CHECK(before == NONE || key_of(record_at(s, before)) < key_of(record_at(s, i)));
            CHECK(++patient <= found->for_place);
            before = i;
        }
        CHECK(s->patience[k].tail == before);
    }
    CHECK(patient == found->for_place && found->for_place == s->stats.for_place);
    CHECK(places == s->places.used && places == s->stats.places);
    return 0;
}

/* Each record and slot is in the list for its state and is found by its name. */
static int check_elements(struct mf_tasks *s, struct found *found)
{
    uint32_t assigned = 0;
    for (uint32_t n = 0; n < s->fresh_records; n++) {
        const struct record *r = record_at(s, FIRST_RECORD + n);
        if (state_of(r) == RECORD_FREE)
            continue;
        assigned += (uint32_t)is_held(r);
        uint32_t client = r->client - s->first_client;
        CHECK(client % CLIENT_LINES == 0 && client / CLIENT_LINES < s->clients.fresh);
        /* It may find another record: after the sequence has wrapped around, several tasks of a client have one name. */
        CHECK(find_task(s, r->client, mf_net32(r->submission), index_of(r)) != NONE);
    }
    for (uint32_t i = 1; i <= s->slots.fresh; i++) {
        const struct slot *slot = slot_at(s, i);
        if (slot->state == SLOT_VACANT)
            continue;
        found->slots++;
        CHECK(slot->generation != 0);
        CHECK(find_slot(s, slot_owner_at(s, i)->executor, slot_owner_at(s, i)->local) == i);
        if (slot->state != SLOT_ASSIGNED)
            continue;
        found->busy++;
        CHECK(is_held(record_at(s, slot->record)) && mf_net32(record_at(s, slot->record)->slot) == i);
        /* T5 */
        CHECK((record_at(s, slot->record)->info.resources & ~slot->resources) == 0);
    }
    CHECK(assigned == found->busy); /* T2: each busy slot has a task, and no two slots have the same */
    return 0;
}

/* T14: each block belongs to one argument, or is free, and counts for its client and that one's source. */
static int check_blocks(struct mf_tasks *s)
{
    /* Sums with a weight for each client and source, so that no two errors cancel each other. */
    uint64_t of_clients = 0, of_sources = 0;
    uint32_t used = 0, free = 0;
    for (uint32_t n = 0; n < s->fresh_records; n++) {
        const struct record *r = record_at(s, FIRST_RECORD + n);
        if (state_of(r) == RECORD_FREE || r->info.argument_length != MF_APPENDED)
            continue;
        uint32_t blocks = blocks_of(appended_length(&r->info)), i = appended_of(&r->info)->first;
        for (uint32_t k = 0; k < blocks; k++, i = block_at(s, i)->next)
            CHECK(i != NONE && i <= s->blocks.fresh);
        used += blocks;
        of_clients += mf_mix(r->client) * blocks;
        of_sources += mf_mix(client_at(s, r->client)->source) * blocks;
    }
    for (uint32_t i = s->blocks.free; i != NONE; i = block_at(s, i)->next)
        CHECK(i <= s->blocks.fresh && ++free <= s->blocks.fresh);
    for (uint32_t n = 0; n < s->clients.fresh; n++)
        if (client_at(s, client_number(s, n))->known)
            of_clients -= mf_mix(client_number(s, n)) * client_at(s, client_number(s, n))->blocks;
    for (uint32_t bucket = 0; bucket <= s->source_buckets; bucket++)
        for (uint32_t i = *source_bucket_at(s, bucket); i != NONE; i = source_at(s, i)->link.next)
            of_sources -= mf_mix(i) * source_at(s, i)->blocks;
    CHECK(used == s->blocks.used && used + free == s->blocks.fresh && s->blocks.fresh <= s->blocks.capacity);
    CHECK(of_clients == 0 && of_sources == 0);
    return 0;
}

/* T7: every record belongs to a task, or is free in exactly one level. */
static int check_records(struct mf_tasks *s, const struct found *found)
{
    uint32_t free = 0;
    for (uint32_t level = 0; level < MF_LEVELS; level++) {
        const struct level_pool *pool = &s->records[level];
        CHECK(pool->fresh <= pool->end && pool->end <= FIRST_RECORD + s->fresh_records);
        free += pool->end - pool->fresh;
        for (uint32_t i = pool->free; i != NONE; i = record_at(s, i)->next) {
            CHECK(i - FIRST_RECORD < s->fresh_records && state_of(record_at(s, i)) == RECORD_FREE);
            CHECK(++free <= s->fresh_records);
        }
    }
    CHECK(free + found->queued_all + found->busy == s->fresh_records && s->fresh_records <= s->queue);
    return 0;
}

/* T1: every acknowledged task is queued, assigned or completed, or was taken out. */
static int check_counts(struct mf_tasks *s, const struct found *found)
{
    struct mf_tasks_stats counted, *stats = &counted;
    mf_tasks_stats(s, stats);
    uint64_t open = 0;
    CHECK(found->queued_all + found->busy == s->queue - s->room);
    CHECK(found->slots == s->slots.used && found->slots == stats->slots);
    CHECK(found->parked == stats->parked && found->busy == stats->busy);
    for (uint32_t level = 0; level < MF_LEVELS; level++) {
        CHECK(found->queued[level] == stats->queued[level]);
        CHECK(((s->levels_used >> level) & 1) == (uint32_t)found->any[level]);
        for (uint32_t group = 0; group < GROUPS; group++) {
            uint32_t number = level * GROUPS + group;
            CHECK(((s->queued_groups[level] >> group) & 1) == (s->queued_masks[number] != 0));
            CHECK(s->oldest[number] == oldest_of(&s->pairs[number * GROUP / 2]));
        }
    }
    for (uint32_t bucket = 0; bucket <= s->client_buckets; bucket++)
        for (uint32_t i = *client_bucket_at(s, bucket); i != NONE; i = client_at(s, i)->link.next)
            open += client_at(s, i)->open;
    CHECK(open == s->queue - s->room);
    CHECK(open == stats->submitted - stats->completed - stats->cancelled - stats->dropped - stats->purged);
    CHECK(stats->clients == s->clients.used);
    return 0;
}

/* T14: each client and slot counts for the source of its address; no unused source is kept. */
static int check_sources(struct mf_tasks *s)
{
    uint32_t clients = 0, slots = 0, tasks = 0, sources = 0;
    for (uint32_t n = 0; n < s->clients.fresh; n++) {
        const struct client *c = client_at(s, client_number(s, n));
        CHECK(!c->known || source_at(s, c->source)->key == source_key(&c->address));
    }
    for (uint32_t i = 1; i <= s->slots.fresh; i++)
        CHECK(slot_at(s, i)->state == SLOT_VACANT ||
              source_at(s, slot_owner_at(s, i)->source)->key == source_key(&slot_at(s, i)->address));
    for (uint32_t bucket = 0; bucket <= s->source_buckets; bucket++)
        for (uint32_t i = *source_bucket_at(s, bucket); i != NONE; i = source_at(s, i)->link.next) {
            const struct source *source = source_at(s, i);
            CHECK(source->clients != 0 || source->slots != 0);
            clients += source->clients;
            slots += source->slots;
            tasks += source->tasks;
            sources++;
        }
    CHECK(clients == s->clients.used && slots == s->slots.used && tasks == s->queue - s->room);
    CHECK(sources == s->sources.used);
    return 0;
}

int mf_tasks_check(const struct mf_tasks *tasks)
{
    /* The cast drops `const` for the engine's accessors; nothing is written. */
    struct mf_tasks *s = (struct mf_tasks *)tasks;
    struct found found = {0};
    int line = 0;
    for (uint32_t level = 0; level < MF_LEVELS && !line; level++)
        for (uint32_t mask = 0; mask < MASKS && !line; mask++)
            line = check_queue_list(s, level, mask, &found);
    for (uint32_t mask = 0; mask < MASKS && !line; mask++)
        line = check_parked_list(s, mask, &found);
    if (!line)
        line = check_places(s, &found);
    if (!line)
        line = check_elements(s, &found);
    if (!line)
        line = check_records(s, &found);
    if (!line)
        line = check_blocks(s);
    if (!line)
        line = check_sources(s);
    return line ? line : check_counts(s, &found);
}

/* For a Rust test that compares the layouts. */
void mf_tasks_layout(uint64_t layout[16])
{
    const uint64_t here[16] = {
        sizeof(struct mf_tasks_config), sizeof(struct mf_tasks_stats), sizeof(struct mf_datagram), sizeof(struct mf_out),
        MF_OP_END,                      MF_WAIT_BUCKETS,               MF_OUT_MAX,                 MF_TICK_SLOTS,
        sizeof(struct mf_tasks_order),        MF_PURGE_CLIENT,               MF_PURGE_RESOURCES,         MF_PURGE_ADDRESS,
        MF_SURVEY_STEP, sizeof(struct mf_surveyed_slot), sizeof(struct mf_surveyed_client), sizeof(struct mf_surveyed_task),
    };
    __builtin_memcpy(layout, here, sizeof(here));
}
