/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Evaluates servers' answers, and decides which statuses to believe (N8). */
#ifndef MIDFLIGHT_CACHE_SELECT_SERVERS_H
#define MIDFLIGHT_CACHE_SELECT_SERVERS_H

#include "select_table.h"

#define SECOND_NS 1000000000ull
#define KNOWN_NS (10 * SECOND_NS)         /* validity of a server's statistics without an answer */
#define SEQUENCE_NS (SECOND_NS / 10)      /* statuses are compared by sequence for this long */
#define TOOK_MAX_NS (60 * SECOND_NS)      /* response times are capped at this */
#define SERVICE_MAX_US 60000000u          /* longest credible service time */

MF_INLINE int believes(struct mf_cache *s, struct chosen_server *server, uint64_t now_ns, const struct mf_server_status *status)
{
    uint32_t service = mf_net32(status->service_us);
    uint16_t sequence = mf_net16(status->sequence);
    if (MF_UNLIKELY(status->queue == 0xffff || service - 1 >= SERVICE_MAX_US)) {
        s->stats.statuses_invalid++;
        return 0;
    }
    int is_recent = server->has_status && now_ns - server->status_at_ns < SEQUENCE_NS;
    if (is_recent && (int16_t)(uint16_t)(sequence - server->sequence) <= 0) {
        s->stats.statuses_outdated++;
        return 0;
    }
    server->status_at_ns = now_ns;
    server->sequence = sequence;
    server->has_status = 1;
    return 1;
}

/* An average in which the newest value has the weight 0.9, as in C3. */
MF_INLINE number mean(number before, number newest)
{
    return plus(times(newest, NUMBER_9_TENTHS), times(before, NUMBER_1_TENTH));
}

MF_INLINE void learn_status(struct chosen_server *server, const struct mf_server_status *status)
{
    number service = number_of(mf_net32(status->service_us) * 1000ull), queue = number_of(mf_net16(status->queue));
    int is_first = server->service == 0;
    server->service = is_first ? service : mean(server->service, service);
    server->queue = is_first ? queue : mean(server->queue, queue);
}

/* Records that this server answered a request after `took_ns`. `status`: the server's status, or 0. */
MF_INLINE void learn(struct mf_cache *s, struct chosen_server *server, uint64_t now_ns, uint64_t took_ns,
                     const struct mf_server_status *status)
{
    int is_known = now_ns < server->known_until_ns;
    int is_believed = status != 0 && believes(s, server, now_ns, status);
    server->known_until_ns = now_ns + KNOWN_NS;
    server->score = 0;
    if (s->selection.kind != MF_SELECT_C3)
        return;
    number took = number_of(took_ns < TOOK_MAX_NS ? took_ns : TOOK_MAX_NS);
    if (!is_known)
        server->service = server->queue = 0;
    server->response = is_known ? mean(server->response, took) : took;
    if (is_believed)
        learn_status(server, status);
}

#endif
