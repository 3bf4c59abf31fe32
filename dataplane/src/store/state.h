/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The state of all replica sets, in one region of memory: a structure of constant size, then the key groups of each set. The configuration
 * bounds both. Zeroed memory is a switch without sets. Addresses and `epoch` are in network byte order, all other numbers in the machine's.
 */
#ifndef MIDFLIGHT_STORE_STATE_H
#define MIDFLIGHT_STORE_STATE_H

#include "midflight/store.h"
#include "shared/answer.h"
#include "shared/mutant.h"

#define SET_NUMBERS 65536
#define KGROUP_BYTES 32
#define KNOWN_CLIENTS 4096 /* a power of two */

/* A key group. If `sid` is not the session's, the entry is outdated: see kgroup_of(). */
struct kgroup {
    uint64_t sid;
    uint64_t seq;      /* last WRITE; 0: none in this session */
    uint64_t index;    /* log index that a replica must have applied to answer a READ */
    uint8_t replicas;  /* bitmap of the replicas that have it */
    uint8_t is_stable; /* 0: a WRITE is in flight */
    uint8_t reserved[6];
};

_Static_assert(sizeof(struct kgroup) == KGROUP_BYTES, "two key groups fill a cache line");

struct replica {
    struct mf_address address; /* port 0: the slot is free */
    uint16_t given;            /* weight from the leader; 0 without an address */
    uint16_t weight;           /* effective weight under the policy: 0 if and only if `given` is */
    uint64_t matched;          /* its log equals the leader's up to this index */
};

struct set {
    uint64_t incarnation;   /* 0: the place is free */
    uint64_t lease_ns;      /* T */
    uint64_t sid;           /* current or last session; 0: none */
    uint64_t start;         /* s */
    uint64_t lease_ends_ns; /* end of the session's lease; 0: it has ended */
    uint64_t seq;           /* last SEQ */
    uint64_t answered_seq;  /* largest SEQ in a WRITE_REPLY: below `seq`, writes are in flight */
    uint64_t ended;         /* highest SID ended by END_SESSION */
    uint64_t draws;         /* replicas drawn at random so far */
    uint32_t epoch;         /* low half of the incarnation, never 0; network byte order */
    uint16_t number;
    uint8_t kgroup_bits;
    uint8_t leader;         /* slot */
    uint8_t reply_check;    /* enum mf_reply_check */
    uint8_t policy;         /* a sum of enum mf_read_policy */
    uint8_t slots;          /* number in the last HEARTBEAT: later slots have no replica */
    uint8_t read_flags;     /* MF_FLAG_ANY_REPLICA if the last HEARTBEAT had `any_replica`; else 0 */
    uint32_t weight;
    uint64_t matched;       /* least matched index of the replicas with a weight: up to it, all of them are consistent */
    uint64_t probes;        /* one byte per replica: the number of its next READs answered through the switch, to show that it is
                             * reachable. Each HEARTBEAT resets it to MF_PROBES */
    struct replica replicas[MF_REPLICAS_MAX];
    uint32_t sent[MF_REPLICAS_MAX];     /* READs since the session began whose replies come through the switch */
    uint32_t answered[MF_REPLICAS_MAX]; /* READ_REPLYs received for them */
    uint64_t echoes[MF_REPLICAS_MAX];   /* latest echo in a HELLO from each place */
    struct mf_address named[MF_REPLICAS_MAX]; /* from the operator: replicas that may say HELLO before there is a session */
    struct mf_set_stats stats;
};

/* A client whose cookie was valid: comparing the next one is cheaper than computing it. */
struct known_client {
    struct mf_address from;
    uint32_t unused;
    uint64_t cookie;
    uint64_t until_ns; /* expiry of the cookie; 0: unused */
};

struct mf_store {
    uint64_t cookie_key[2];
    uint64_t cookie_ns;
    uint64_t lease_ns;
    uint64_t kgroups_at;     /* offset of the first set's key groups */
    uint64_t kgroups_stride; /* distance of two sets' key groups in bytes */
    uint32_t sets_max;
    uint32_t kgroup_bits;
    uint64_t packets[MF_STORE_OP_END];
    uint64_t reasons[MF_V_STORE_END];
    struct set sets[MF_SETS_MAX];
    struct known_client known[KNOWN_CLIENTS]; /* by a hash of the address: see cookie.h */
    uint8_t places[SET_NUMBERS]; /* by set number: its place in `sets`, plus 1; 0: no such set */
};

struct call {
    uint64_t now_ns;
    const struct mf_datagram *in;
    struct mf_out *out;
};

/* Reads the time in a call that may have started without it: most packets of its kind need none. */
#ifndef MF_TIME_AFTER_ALL
#define MF_TIME_AFTER_ALL(call) ((call)->now_ns)
#endif

MF_INLINE struct set *find_set(struct mf_store *s, uint32_t number)
{
    uint32_t place = s->places[number];
    return place ? &s->sets[(place - 1) % MF_SETS_MAX] : 0;
}

MF_INLINE struct kgroup *kgroup_at(struct mf_store *s, uint32_t place, uint32_t i)
{
    return (struct kgroup *)((uint8_t *)s + s->kgroups_at + place * s->kgroups_stride) + i;
}

MF_INLINE struct kgroup *kgroup_of_hash(struct mf_store *s, const struct set *set, uint32_t hash)
{
    return kgroup_at(s, (uint32_t)(set - s->sets), (uint32_t)((uint64_t)hash >> (32 - set->kgroup_bits)));
}

/* Recomputes the weights after a change of the policy or of the leader's weights. So a READ need not consult the policy, nor usually each
 * replica. */
MF_INLINE void weigh(struct set *set)
{
    set->weight = 0;
    set->matched = UINT64_MAX;
    for (uint32_t slot = MF_ZERO; MF_LOOP(slot < MF_REPLICAS_MAX); slot++) {
        struct replica *replica = &set->replicas[slot];
        replica->weight = set->policy & MF_POLICY_LOAD_AWARE ? replica->given : replica->given != 0;
        set->weight += replica->weight;
        if (replica->weight && replica->matched < set->matched)
            set->matched = replica->matched;
    }
}

MF_INLINE int is_active(const struct set *set, uint64_t now_ns)
{
    return now_ns < set->lease_ends_ns;
}

/* Whether this session is the current one and takes requests now. */
MF_INLINE int is_present(const struct set *set, uint64_t now_ns, uint64_t sid)
{
    return set->sid == sid && is_active(set, now_ns);
}

/* The key group of a hash in the current session. An outdated entry counts as stable, without a WRITE, with all replicas consistent that
 * have the session's own log entry. It is converted here, so that one message can start a session. */
MF_INLINE struct kgroup *kgroup_of(struct mf_store *s, struct set *set, uint32_t hash)
{
    struct kgroup *group = kgroup_of_hash(s, set, hash);
    if (MF_UNLIKELY(group->sid != set->sid)) {
        group->sid = set->sid;
        group->seq = 0;
        if (!MF_MUTANT(104))
            group->index = set->start;
        group->replicas = 0;
        group->is_stable = 1;
    }
    return group;
}

#endif
