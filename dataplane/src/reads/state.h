/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The state of all replica sets, in one region of memory: a structure of constant size, then the key groups of each set, for as many
 * sets and key groups as the configuration admits. Zeroed memory is a switch without sets. Addresses are in the byte order of the
 * network, all numbers in that of the machine, but for `epoch`.
 */
#ifndef MIDFLIGHT_READS_STATE_H
#define MIDFLIGHT_READS_STATE_H

#include "midflight/reads.h"
#include "shared/answer.h"
#include "shared/mutant.h"

#define SET_NUMBERS 65536
#define KGROUP_BYTES 32
#define KNOWN_CLIENTS 4096 /* a power of two */

/* A key group. If `sid` is not that of the set's session, the entry is of an earlier one: see kgroup_of(). */
struct kgroup {
    uint64_t sid;
    uint64_t seq;      /* of the last WRITE; 0: none in this session */
    uint64_t index;    /* what a replica must have applied to answer a READ */
    uint8_t replicas;  /* bitmap of those that have it */
    uint8_t is_stable; /* 0: a WRITE is on its way */
    uint8_t reserved[6];
};

_Static_assert(sizeof(struct kgroup) == KGROUP_BYTES, "two key groups fill a cache line");

/* A replica in the session. */
struct replica {
    struct mf_address address; /* port 0: none has this slot */
    uint16_t given;            /* the weight that the leader gives it; 0 without an address */
    uint16_t weight;           /* the one that counts, as the policy says: 0 if and only if `given` is */
    uint64_t matched;          /* its log is the leader's up to this index */
};

struct set {
    uint64_t incarnation;   /* 0: no set has this place */
    uint64_t lease_ns;      /* T */
    uint64_t sid;           /* of the present or last session; 0: there was none */
    uint64_t start;         /* s */
    uint64_t lease_ends_ns; /* the session is active before; 0: it has ended */
    uint64_t seq;           /* the last SEQ */
    uint64_t answered_seq;  /* the largest SEQ that a WRITE_REPLY carried: below `seq`, writes are under way */
    uint64_t ended;         /* the highest SID that END_SESSION has ended */
    uint64_t draws;         /* how often a replica was drawn by lot */
    uint32_t epoch;         /* the low half of the incarnation, never 0; network byte order */
    uint16_t number;
    uint8_t kgroup_bits;
    uint8_t leader;         /* its slot */
    uint8_t reply_check;    /* enum mf_reply_check */
    uint8_t policy;         /* a sum of enum mf_read_policy */
    uint8_t slots;          /* that the last HEARTBEAT had: those from there on have no replica */
    uint8_t read_flags;     /* MF_FLAG_ANY_REPLICA where the last HEARTBEAT had `any_replica`; else 0 */
    uint32_t weight;        /* the sum of the replicas' weights */
    uint64_t matched;       /* the least matched index of those with a weight: up to it, all of them are consistent */
    uint64_t probes;        /* a byte for each replica: so many of its next READs are answered through the switch, which shows that
                             * it is reached. Each HEARTBEAT makes it MF_PROBES */
    struct replica replicas[MF_REPLICAS_MAX];
    uint32_t sent[MF_REPLICAS_MAX];     /* READs to be answered through the switch, since the session began */
    uint32_t answered[MF_REPLICAS_MAX]; /* their READ_REPLYs */
    uint64_t echoes[MF_REPLICAS_MAX];   /* the latest of a HELLO from each place */
    struct mf_address named[MF_REPLICAS_MAX]; /* by the operator: who may say HELLO before there is a session */
    struct mf_set_stats stats;
};

/* A client whose cookie was right: to compare it with the next one costs less than to compute it again. */
struct known_client {
    struct mf_address from;
    uint32_t unused;
    uint64_t cookie;
    uint64_t until_ns; /* the cookie is valid before; 0: nobody has this place */
};

struct mf_reads {
    uint64_t cookie_key[2];
    uint64_t cookie_ns;
    uint64_t lease_ns;
    uint64_t kgroups_at;     /* offset of the first set's key groups */
    uint64_t kgroups_stride; /* bytes from one set's to the next one's */
    uint32_t sets_max;
    uint32_t kgroup_bits;
    uint64_t packets[MF_READS_OP_END];
    uint64_t reasons[MF_V_READS_END];
    struct set sets[MF_SETS_MAX];
    struct known_client known[KNOWN_CLIENTS]; /* by a hash of the address: see cookie.h */
    uint8_t places[SET_NUMBERS]; /* by a set's number: its place in `sets`, plus 1; 0: there is no such set */
};

/* A datagram that is being taken. */
struct call {
    uint64_t now_ns;
    const struct mf_datagram *in;
    struct mf_out *out;
};

/* The time of a call that may have begun without it, because most of its kind need none: in the kernel it is read only here. */
#ifndef MF_TIME_AFTER_ALL
#define MF_TIME_AFTER_ALL(call) ((call)->now_ns)
#endif

/* The set of this number, or 0. */
MF_INLINE struct set *find_set(struct mf_reads *s, uint32_t number)
{
    uint32_t place = s->places[number];
    return place ? &s->sets[(place - 1) % MF_SETS_MAX] : 0;
}

MF_INLINE struct kgroup *kgroup_at(struct mf_reads *s, uint32_t place, uint32_t i)
{
    return (struct kgroup *)((uint8_t *)s + s->kgroups_at + place * s->kgroups_stride) + i;
}

MF_INLINE struct kgroup *kgroup_of_hash(struct mf_reads *s, const struct set *set, uint32_t hash)
{
    return kgroup_at(s, (uint32_t)(set - s->sets), (uint32_t)((uint64_t)hash >> (32 - set->kgroup_bits)));
}

/* The policy, or what the leader gives, has changed. So a READ needs no look at the policy, and mostly none at each replica. */
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

/* Whether a session of the set takes requests now. */
MF_INLINE int is_active(const struct set *set, uint64_t now_ns)
{
    return now_ns < set->lease_ends_ns;
}

/* Whether this session is the present one, and takes requests now. */
MF_INLINE int is_present(const struct set *set, uint64_t now_ns, uint64_t sid)
{
    return set->sid == sid && is_active(set, now_ns);
}

/* The key group of a hash, in the present session. An entry of another session counts as stable, with no WRITE, and all replicas
 * that have the session's own entry are consistent; so a session begins with one message, and here its entry is made so. */
MF_INLINE struct kgroup *kgroup_of(struct mf_reads *s, struct set *set, uint32_t hash)
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
