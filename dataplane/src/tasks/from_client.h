/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Handlers of SUBMIT, CANCEL and PROBE. */
#ifndef MIDFLIGHT_FROM_CLIENT_H
#define MIDFLIGHT_FROM_CLIENT_H

#include "cookie.h"
#include "sources.h"
#include "wishes.h"

/* Adds a client whose first packet has this sequence; NONE if there is no room, or its source has its share (T14). */
MF_RARE uint32_t add_client(struct mf_tasks *s MF_IN_ARENA, uint64_t identity, const struct mf_datagram *in MF_IN_ARENA,
                            uint32_t sequence)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    uint32_t known = find_source(s, &in->from), held = known == NONE ? 0 : source_at(s, known)->clients;
    if (!is_within_share(held, s->clients.capacity - s->clients.used))
        return NONE;
    uint32_t i = take_client(s);
    struct client *c = client_at(s, i);
    c->identity = identity;
    c->seen = 0;
    c->highest = sequence;
    c->open = 0;
    c->known = 1;
    c->probed = 0;
    c->blocks = 0;
    c->unwanted = 0;
    c->source = find_or_add_source(s, &in->from);
    source_at(s, c->source)->clients++;
    MF_COPY(&c->address, &in->from);
    client_index_insert(s, client_bucket(s, identity), i);
    s->stats.clients++;
    return i;
}

static void forget_client(struct mf_tasks *s, uint32_t i)
{
    struct client *c = client_at(s, i);
    c->known = 0;
    source_at(s, c->source)->clients--;
    release_source(s, c->source);
    client_index_remove(s, i);
    give_client(s, i);
    s->stats.clients--;
}

MF_INLINE int is_silent(const struct mf_tasks *s, const struct client *c, uint64_t now_ns)
{
    return silence(c->heard_ns, now_ns) >= (MF_MUTANT(7) ? 60000000000ull : s->client_idle_ns);
}

/* Whether a client may return as another process and wants the results of its running tasks. */
MF_INLINE int is_durable(const struct client *c)
{
    return (mf_net64(c->identity) & MF_DURABLE) != 0;
}

/* A sequence's position in the client's window (T8). */
enum freshness { FRESH, REPEATED, TOO_OLD };

/* Marks a sequence as seen, and moves the window if it is the highest. `ahead`: its distance from the highest one. */
MF_INLINE enum freshness window_see(struct client *c, int32_t ahead)
{
    if (ahead > 0) {
        c->seen = ahead < MF_WINDOW ? c->seen << ahead : 0;
        c->highest += (uint32_t)ahead;
        ahead = 0;
    }
    if (ahead <= -MF_WINDOW)
        return TOO_OLD;
    uint64_t bit = 1ull << -ahead;
    if (c->seen & bit)
        return REPEATED;
    c->seen |= bit;
    return FRESH;
}

/* The preference at the end of a SUBMIT of the right length, or NULL. `appended`: bytes of appended arguments. */
MF_INLINE const struct mf_preference *preference_in(const struct mf_datagram *in, uint32_t appended)
{
    const struct mf_submit *packet = (const struct mf_submit *)in->data;
    uint32_t records = sizeof(*packet) + sizeof(struct mf_task_info) * packet->header.count;
    if (MF_LIKELY(in->length == records + appended))
        return NULL;
    const struct mf_preference *preference = (const struct mf_preference *)(in->data + records + appended);
    return preference->place != 0 ? preference : NULL;
}

/* Counts tasks that find no room; returns the reason to tell. */
MF_INLINE enum mf_reason refuse_tasks(struct mf_tasks *s, mf_verdict why, uint32_t tasks)
{
    *MF_AT(s, stats.reasons, why) += tasks;
    return why == MF_V_FULL || why == MF_V_ARGUMENTS_FULL ? MF_REASON_FULL : MF_REASON_SHARE;
}

/* Accepts at most `most` tasks in order, until one finds no record or their source has its share; returns how many. */
MF_INLINE uint32_t accept_tasks(struct mf_tasks *s, uint64_t now_ns, const struct mf_datagram *in, struct mf_out *out,
                                uint32_t client, uint32_t most, const struct mf_preference *preference, enum mf_reason *reason)
{
    const struct mf_submit *packet = (const struct mf_submit *)in->data;
    const struct mf_task_info *info = (const struct mf_task_info *)(packet + 1);
    uint32_t submission = mf_net32(packet->header.sequence);
    struct source *source = source_at(s, client_at(s, client)->source);
    uint32_t index = MF_ZERO;
    int64_t left = share_left(source->tasks, s->room);
    uint32_t bucket = task_bucket(s, client, submission, 0) + index * TASK_STRIDE;
    uint32_t wanted = MF_LIKELY(preference == NULL) ? ANYWHERE : wanted_by(s, preference);
    do {
        s = MF_OPAQUE(s);
        uint32_t list = list_for(info), i = NONE;
        if (MF_LIKELY(left > 0))
            i = take_record(s, list / MASKS);
        if (MF_UNLIKELY(i == NONE)) {
            *reason = refuse_tasks(s, index == s->room ? MF_V_FULL : MF_V_QUEUE_SHARE, packet->header.count - index);
            break;
        }
        struct record *r = record_at(s, i);
        uint64_t now = now_ns >> KEY_SHIFT, after = s->last_key + 1, key = now > after ? now : after;
        uint64_t stamp = key << STAMP_SHIFT | index << INDEX_SHIFT | RECORD_QUEUED;
        s->last_key = key;
        r->stamp = stamp;
        r->client = client;
        MF_COPY(&r->info, info);
        r->jid = packet->jid;
        r->submission = packet->header.sequence;
        *token_at(s, i) = packet->token;
        name_task(s, bucket & s->task_buckets, i);
        uint32_t at_place = MF_LIKELY(wanted == ANYWHERE) ? NONE : slot_or_wish(s, i, wanted);
        if (MF_LIKELY(at_place == NONE))
            assign_or_queue(s, out, now_ns, i, stamp, list);
        else if (at_place != WISHED)
            assign_parked(s, out, now_ns, i, at_place);
        if (MF_UNLIKELY(wanted != ANYWHERE && at_place == NONE))
            out_of_patience(s, i, stamp);
        left -= SHARE_OF_ONE;
        bucket += TASK_STRIDE;
        info++;
    } while (MF_UNLIKELY(MF_LOOP(++index < most)));
    if (MF_UNLIKELY(preference != NULL) && wanted == ANYWHERE)
        s->stats.reasons[MF_V_NO_PLACE] += index;
    source->tasks += index;
    s->room -= index;
    s->stats.submitted += index;
    return index;
}

#ifndef __bpf__
/* The same for tasks with a placement preference: a separate function, so that others do not pay for it. */
MF_RARE uint32_t accept_preferring(struct mf_tasks *s, uint64_t now_ns, const struct mf_datagram *in, struct mf_out *out,
                                   uint32_t client, uint32_t most, const struct mf_preference *preference, enum mf_reason *reason)
{
    return accept_tasks(s, now_ns, in, out, client, most, preference, reason);
}
#endif

/* Checks the tasks of a SUBMIT from `info` on, of which some have longer arguments. Returns the bytes of appended ones, or minus a
 * verdict. */
MF_RARE int check_longer_tasks(const struct mf_tasks *s MF_IN_ARENA, const struct mf_datagram *in MF_IN_ARENA,
                               const struct mf_task_info *info MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    MF_FROM_ARENA(info);
    const struct mf_submit *packet = (const struct mf_submit *)in->data;
    const struct mf_task_info *end = (const struct mf_task_info *)(packet + 1) + packet->header.count;
    uint32_t levels = s->levels, bytes = MF_ZERO;
    for (; MF_LOOP(info < end); info++) {
        if (info->priority - 1u >= levels)
            return -(int)MF_V_BAD_PRIORITY;
        if (info->argument_length <= MF_ARGUMENT_MAX || info->argument_length == MF_BY_REFERENCE)
            continue;
        if (info->argument_length != MF_APPENDED ||
            appended_length(info) - MF_ARGUMENT_MAX - 1 >= MF_APPENDED_MAX - MF_ARGUMENT_MAX)
            return -(int)MF_V_BAD_ARGUMENT;
        bytes += appended_bytes(info);
    }
    return (int)bytes;
}

/* Checks the fields of all tasks, and the length of the packet, first: not even a bad last task may change any state (T11). Returns the
 * bytes of appended arguments, or minus a verdict. */
MF_INLINE int check_tasks(const struct mf_tasks *s, const struct mf_datagram *in)
{
    const struct mf_submit *packet = (const struct mf_submit *)in->data;
    const struct mf_task_info *info = (const struct mf_task_info *)(packet + 1), *end = info + packet->header.count;
    uint32_t levels = s->levels, right = sizeof(*packet) + sizeof(*info) * packet->header.count;
    int bytes = 0;
    do {
        if (MF_UNLIKELY(info->priority - 1u >= levels))
            return -(int)MF_V_BAD_PRIORITY;
        if (MF_UNLIKELY(info->argument_length > MF_ARGUMENT_MAX)) {
            bytes = check_longer_tasks(s, in, info);
            if (bytes < 0)
                return bytes;
            right += (uint32_t)bytes;
            break;
        }
    } while (MF_UNLIKELY(MF_LOOP(++info < end)));
    if (MF_LIKELY(in->length == right))
        return right <= MF_PACKET_MAX ? bytes : -(int)MF_V_TRAILING;
    if (in->length < right)
        return -(int)MF_V_TRUNCATED;
    return in->length == right + sizeof(struct mf_preference) && in->length <= MF_PACKET_MAX ? bytes : -(int)MF_V_TRAILING;
}

/* Changes a client's address. Its records count for the new source. */
MF_RARE int move_client(struct mf_tasks *s MF_IN_ARENA, uint32_t i, const struct mf_datagram *in MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    struct client *c = client_at(s, i);
    uint32_t before = c->source;
    source_at(s, before)->clients--;
    source_at(s, before)->tasks -= c->open;
    source_at(s, before)->blocks -= c->blocks;
    release_source(s, before);
    c->source = find_or_add_source(s, &in->from);
    source_at(s, c->source)->clients++;
    source_at(s, c->source)->tasks += c->open;
    source_at(s, c->source)->blocks += c->blocks;
    MF_COPY(&c->address, &in->from);
    return 0;
}

MF_INLINE int is_at_home(struct mf_tasks *s, uint32_t client, const struct mf_datagram *in)
{
    return MF_LIKELY(client != NONE) && MF_LIKELY(mf_address_equal(&client_at(s, client)->address, &in->from));
}

/* Distance of a sequence from the client's highest one; 0 for an unknown client. */
MF_INLINE int32_t ahead_of(struct mf_tasks *s, uint32_t client, uint32_t sequence)
{
    return MF_LIKELY(client != NONE) ? mf_serial_distance(sequence, client_at(s, client)->highest) : 0;
}

/* Whether a distance exceeds what a client can reach while this switch answers it. If so, it was at another switch, or an attacker uses its
 * name, so it must show a cookie. */
MF_INLINE int is_far(int32_t ahead)
{
    return ahead > MF_WINDOW;
}

/* Looks a sequence up in the client's window. A new one proves that the client lives and gives its current address. */
MF_INLINE enum freshness hear_client(struct mf_tasks *s, uint32_t i, uint64_t now_ns, const struct mf_datagram *in,
                                     int32_t ahead, int at_home)
{
    struct client *c = client_at(s, i);
    enum freshness fresh = window_see(c, ahead);
    if (MF_LIKELY(fresh == FRESH)) {
        c->heard_ns = now_ns;
        if (MF_UNLIKELY(!at_home))
            move_client(s, i, in);
    }
    return fresh;
}

/* Accepts the tasks of a SUBMIT if its sequence is new; otherwise repeats the answer. Returns the bitmap of accepted tasks. */
MF_INLINE uint32_t submit(struct mf_tasks *s, uint64_t now_ns, const struct mf_datagram *in, struct mf_out *out, uint32_t i,
                          int32_t ahead, int at_home, uint32_t appended, mf_verdict *verdict, enum mf_reason *reason)
{
    struct mf_submit *packet = (struct mf_submit *)in->data;
    uint32_t sequence = mf_net32(packet->header.sequence);
    struct client *c = client_at(s, i);
    uint32_t *stored = &c->answer[sequence % MF_WINDOW];
    enum freshness fresh = hear_client(s, i, now_ns, in, ahead, at_home);
    if (MF_LIKELY(fresh == FRESH)) {
        c->uid = packet->uid;
        const struct mf_preference *preference = preference_in(in, appended);
        uint32_t most = packet->header.count, accepted = 0;
        if (MF_UNLIKELY(appended != 0))
            most = keep_arguments(s, i, packet, out);
        if (MF_LIKELY(most != 0)) {
#ifdef __bpf__ /* the verifier would follow the same loop twice, and the stack of all calls is bounded */
            accepted = accept_tasks(s, now_ns, in, out, i, most, preference, reason);
#else
            accepted = MF_LIKELY(preference == NULL) ? accept_tasks(s, now_ns, in, out, i, most, NULL, reason)
                                                     : accept_preferring(s, now_ns, in, out, i, most, preference, reason);
#endif
        }
        if (MF_UNLIKELY(out->note != 0)) {
            uint32_t refused = settle_arguments(s, i, packet, out, accepted);
            if (refused != MF_V_OK)
                *reason = refuse_tasks(s, refused, packet->header.count - accepted);
        }
        c->open += accepted;
        if (MF_MUTANT(16) && accepted > 16) { /* planted bug: stores half of the bitmap */
            *stored = 0xffff;
            return mf_low_bits(accepted);
        }
        return *stored = accepted ? mf_low_bits(accepted) : 0;
    }
    if (fresh == REPEATED) {
        *verdict = MF_V_REPEATED_SUBMIT;
        return *stored;
    }
    *verdict = MF_V_TOO_OLD;
    *reason = MF_REASON_TOO_OLD;
    return 0;
}

MF_HANDLER mf_verdict handle_submit(struct mf_tasks *s, uint64_t now_ns, const struct mf_datagram *in,
                                         struct mf_out *out)
{
    const struct mf_submit *packet = (const struct mf_submit *)in->data;
    mf_verdict verdict = check_least(in, sizeof(*packet), sizeof(struct mf_task_info), 1, MF_SUBMIT_MAX);
    s->stats.packets[MF_OP_SUBMIT]++;
    if (MF_UNLIKELY(verdict != MF_V_OK))
        return verdict;
    int appended = check_tasks(s, in);
    if (MF_UNLIKELY(appended < 0))
        return (mf_verdict)-appended;
    uint64_t identity = packet->client;
    uint32_t sequence = mf_net32(packet->header.sequence);
    uint32_t taken = 0, all = mf_low_bits(packet->header.count);
    enum mf_reason reason = MF_REASON_FULL; /* for tasks not taken */
    uint32_t i = find_client(s, identity);
    int at_home = is_at_home(s, i, in);
    int32_t ahead = ahead_of(s, i, sequence);
    if (MF_UNLIKELY(!at_home || is_far(ahead)) && !has_cookie(s, now_ns, in))
        return put_cookie(s, now_ns, in, out);
    /* The answer comes first, before the assignments of its tasks to parked slots. */
    struct mf_out_packet *answer = first_packet(out, &in->from, sizeof(struct mf_submit_ack));
    struct mf_submit_ack *ack = (struct mf_submit_ack *)answer->data;
    put_header(s, answer->data, MF_OP_SUBMIT_ACK, packet->header.count, packet->header.sequence);

    if (MF_UNLIKELY(i == NONE)) {
        i = add_client(s, identity, in, sequence);
        at_home = 1;
    }
    if (MF_LIKELY(i != NONE)) {
        taken = submit(s, now_ns, in, out, i, ahead, at_home, (uint32_t)appended, &verdict, &reason);
    } else if (s->clients.used == s->clients.capacity) {
        verdict = MF_V_CLIENTS_FULL;
        reason = MF_REASON_CLIENTS_FULL;
    } else {
        verdict = MF_V_CLIENTS_SHARE;
        reason = MF_REASON_SHARE;
    }
    ack->client = identity;
    ack->taken = mf_net32(taken & all);
    ack->not_taken = mf_net32(all & ~taken);
    put_byte(&ack->reason, (all & ~taken) ? reason : MF_REASON_NONE);
    ack->room = mf_net32(s->room);
    return verdict;
}

/* The record that a PROBE or CANCEL names, or NONE. */
MF_INLINE uint32_t named_task(struct mf_tasks *s, uint32_t client, const struct mf_task_name *name)
{
    return find_task(s, client, mf_net32(name->submission), name->index);
}

/* Removes a queued task from its lists and frees it. */
MF_INLINE void take_out(struct mf_tasks *s, uint32_t task)
{
    if (waits_for_place(s, task))
        wish_no_more(s, task);
    else
        queue_remove(s, task);
    forget_task(s, task);
}

/* Removes the tasks that are still queued and returns their bitmap. Assigned ones are not assigned again. */
static uint32_t cancel_tasks(struct mf_tasks *s, struct call *call, uint32_t client)
{
    const struct mf_task_name *names = (const struct mf_task_name *)(call->in->data + sizeof(struct mf_cancel));
    uint32_t taken_out = 0;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records_in(call) && k < MF_CANCEL_MAX); k++) {
        uint32_t task = named_task(s, client, &names[k]);
        if (task == NONE) {
            count(s, MF_V_NOT_QUEUED);
            continue;
        }
        if (is_held(record_at(s, task))) {
            set_state(record_at(s, task), RECORD_STOPPING);
            continue;
        }
        take_out(s, task);
        s->stats.cancelled++;
        taken_out |= 1u << k;
    }
    return taken_out;
}

/* Appends the executors of the cancelled tasks to CANCEL_ACK; in the answer to a repeat, the current ones. */
static void put_holders(struct mf_tasks *s, struct call *call, uint32_t client, struct mf_out_packet *answer)
{
    const struct mf_task_name *names = (const struct mf_task_name *)(call->in->data + sizeof(struct mf_cancel));
    struct mf_holder *holders = (struct mf_holder *)(answer->data + sizeof(struct mf_cancel_ack));
    uint32_t held = MF_ZERO;
    for (uint32_t k = MF_ZERO; MF_LOOP(k < records_in(call) && k < MF_CANCEL_MAX); k++) {
        uint32_t task = named_task(s, client, &names[k]);
        if (task == NONE || state_of(record_at(s, task)) != RECORD_STOPPING || (MF_MUTANT(47) && held >= 16))
            continue;
        struct mf_holder *holder = &holders[held++ % MF_CANCEL_MAX];
        MF_COPY(&holder->executor, &slot_at(s, mf_net32(record_at(s, task)->slot))->address);
        put_byte(&holder->index, (uint8_t)k);
    }
    answer->length += held * sizeof(*holders);
    header_of(answer)->count = (uint8_t)held;
}

/* Whether the answer to a CANCEL may exceed `room` bytes. */
MF_INLINE int cancel_owes_more(const struct mf_datagram *in, uint32_t room)
{
    uint32_t records = ((const struct mf_header *)in->data)->count;
    return sizeof(struct mf_cancel_ack) + records * sizeof(struct mf_holder) > room;
}

MF_HANDLER mf_verdict handle_cancel(struct mf_tasks *s, struct call *call)
{
    const struct mf_cancel *packet = (const struct mf_cancel *)call->in->data;
    mf_verdict verdict = check_shape(call->in, sizeof(*packet), sizeof(struct mf_task_name), 1, MF_CANCEL_MAX);
    if (verdict != MF_V_OK)
        return verdict;
    uint64_t identity = packet->client;
    uint32_t sequence = mf_net32(packet->header.sequence);
    uint32_t taken_out = 0;
    uint32_t i = find_client(s, identity);
    int at_home = is_at_home(s, i, call->in);
    int32_t ahead = ahead_of(s, i, sequence);
    if (i != NONE && (!at_home || is_far(ahead)) && !has_cookie(s, call->now_ns, call->in))
        return put_cookie(s, call->now_ns, call->in, call->out);
    if (i == NONE) {
        s->stats.reasons[MF_V_NOT_QUEUED] += records_in(call);
    } else {
        uint32_t *stored = &client_at(s, i)->answer[sequence % MF_WINDOW];
        enum freshness fresh = hear_client(s, i, call->now_ns, call->in, ahead, at_home);
        if (fresh == FRESH) {
            taken_out = *stored = cancel_tasks(s, call, i);
        } else if (fresh == REPEATED) {
            verdict = MF_V_REPEATED_SUBMIT;
            taken_out = *stored;
        } else {
            verdict = MF_V_TOO_OLD;
        }
    }
    struct mf_out_packet *answer = next_packet(call->out, &call->in->from, sizeof(struct mf_cancel_ack));
    put_header(s, answer->data, MF_OP_CANCEL_ACK, 0, packet->header.sequence);
    struct mf_cancel_ack *ack = (struct mf_cancel_ack *)answer->data;
    ack->client = identity;
    ack->taken_out = mf_net32(taken_out & mf_low_bits(records_in(call)));
    ack->reason = verdict == MF_V_TOO_OLD ? MF_REASON_TOO_OLD : MF_REASON_NONE;
    ack->reserved[0] = ack->reserved[1] = ack->reserved[2] = 0;
    if (i != NONE && verdict != MF_V_TOO_OLD)
        put_holders(s, call, i, answer);
    return verdict;
}

/* A later PROBE than the last proves that the client lives and gives its current address. */
static void hear_probe(struct mf_tasks *s, struct call *call, uint32_t i, uint32_t sequence, int at_home)
{
    struct client *c = client_at(s, i);
    if (mf_serial_distance(sequence, c->probed) <= 0)
        return;
    c->probed = sequence;
    c->heard_ns = call->now_ns;
    if (!at_home)
        move_client(s, i, call->in);
}

MF_HANDLER mf_verdict handle_probe(struct mf_tasks *s, struct call *call)
{
    const struct mf_probe *packet = (const struct mf_probe *)call->in->data;
    const struct mf_task_name *names = (const struct mf_task_name *)(call->in->data + sizeof(*packet));
    mf_verdict verdict = check_shape(call->in, sizeof(*packet), sizeof(*names), 0, MF_PROBE_MAX);
    if (verdict != MF_V_OK)
        return verdict;
    uint64_t identity = packet->client;
    uint32_t open = 0;
    uint32_t i = find_client(s, identity);
    int at_home = is_at_home(s, i, call->in);
    if (!at_home && !has_cookie(s, call->now_ns, call->in))
        return put_cookie(s, call->now_ns, call->in, call->out);
    if (i != NONE) {
        hear_probe(s, call, i, mf_net32(packet->header.sequence), at_home);
        for (uint32_t k = MF_ZERO; MF_LOOP(k < records_in(call) && k < MF_PROBE_MAX); k++)
            open |= (uint32_t)(named_task(s, i, &names[k]) != NONE) << k;
    }
    struct mf_out_packet *answer = next_packet(call->out, &call->in->from, sizeof(struct mf_probe_ack));
    put_header(s, answer->data, MF_OP_PROBE_ACK, records_in(call), packet->header.sequence);
    struct mf_probe_ack *ack = (struct mf_probe_ack *)answer->data;
    ack->client = identity;
    MF_COPY(&ack->seen, &call->in->from);
    ack->room = mf_net32(s->room);
    ack->open = mf_net32(open);
    ack->known = i != NONE ? MF_KNOWN_YES : MF_KNOWN_NO;
    ack->reserved[0] = ack->reserved[1] = ack->reserved[2] = 0;
    return MF_V_OK;
}

#endif
