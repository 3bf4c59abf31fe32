/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The reads program of the soft engine, in the shape that switch.h describes: it sends each read to a replica that is up to date.
 * `docs/internals/reads.md` is the contract, `docs/internals/reads-switch.md` explains the state.
 */
#ifndef MIDFLIGHT_READS_H
#define MIDFLIGHT_READS_H

#include "midflight/reads_verdict.h"
#include "midflight/reads_wire.h"
#include "midflight/switch.h"

#define MF_SETS_MAX 64
#define MF_LEASE_MAX_NS (1ull << 42) /* more than an hour: sums of a lease and a time do not wrap */
#define MF_ORDER_KGROUPS 4096        /* key groups that one call of an order clears */
#define MF_PROBES 4                  /* READs to each replica after a HEARTBEAT that are not answered directly */

struct mf_reads; /* all replica sets of a switch */

struct mf_reads_config {
    uint32_t sets;        /* room for so many replica sets: 1 to MF_SETS_MAX */
    uint32_t kgroup_bits; /* each of up to 2^this key groups: 0 to MF_KGROUP_BITS_MAX */
    uint64_t lease_ns;    /* T of a set whose order names none: 1 to MF_LEASE_MAX_NS */
    uint64_t cookie_ns;   /* time is divided into intervals of this length; a cookie is valid in the interval that it was
                           * made in and in the next */
};

/* What became of the requests for one set, since it was added. */
struct mf_set_stats {
    uint64_t to_followers; /* READs of stable key groups to replicas that do not lead */
    uint64_t to_leader;    /* READs of stable key groups to the leader */
    uint64_t leader_only;  /* READs that only the leader may answer */
    uint64_t direct;       /* READs whose replies may go to the client directly; they are counted above too */
    uint64_t turned_back;  /* replies of replicas that became such READs */
    uint64_t outdated;     /* replies of the leader that came too late: their clients were told to repeat the request */
    uint64_t writes;       /* WRITEs */
    uint64_t closed;       /* WRITE_REPLYs that closed their key group */
    uint64_t sessions;     /* sessions that began */
    uint64_t unserved;     /* requests without a session here, of clients that say that no switch serves them */
    uint32_t unstable;     /* key groups that are unstable in the present session */
    uint16_t set;          /* its number */
    uint16_t is_used;      /* 0: no set has this place */
};

struct mf_reads_stats {
    uint64_t packets[MF_READS_OP_END];   /* datagrams with a valid header, by operation */
    uint64_t reasons[MF_V_READS_END];    /* datagrams by verdict */
    struct mf_set_stats sets[MF_SETS_MAX];
};

/* The operator's order: a set is added or removed, or what may change in it is changed: reply check, policy, who may say HELLO. */
enum mf_set_order { MF_SET_ADD, MF_SET_REMOVE, MF_SET_CHANGE };

enum mf_set_outcome {
    MF_SET_DONE,
    MF_SET_EXISTS,  /* ADD: a set has this number */
    MF_SET_NO_ROOM, /* ADD: as many sets as the configuration admits */
    MF_SET_BAD,     /* ADD, CHANGE: a bound is violated */
    MF_SET_UNKNOWN, /* REMOVE, CHANGE: no set has this number */
    MF_SET_FROZEN,  /* CHANGE: the set has another lease, or another number of key groups */
};

/* Which replies of replicas that do not lead go to the client. STRICT: those whose session and SEQ are still the key group's. DIRECT:
 * all, as with RELAXED, and most of them do not pass the switch. */
enum mf_reply_check { MF_REPLY_STRICT, MF_REPLY_RELAXED, MF_REPLY_DIRECT, MF_REPLY_END };

/* Which consistent replica gets a READ: a sum. RANDOM: all of them have the same chance. */
enum mf_read_policy {
    MF_POLICY_RANDOM = 0,
    MF_POLICY_AVOID_LEADER = 1, /* not the leader while writes are under way, if there is another */
    MF_POLICY_LOAD_AWARE = 2,   /* chances in proportion to the weights that the leader gives them */
    MF_POLICY_ALL = 3,
};

struct mf_reads_order {
    uint64_t incarnation; /* ADD: random, drawn by the caller, not 0 */
    uint64_t lease_ns;    /* ADD, CHANGE: T; 0: that of the configuration */
    uint32_t next;        /* the next key group to clear; 0 at first */
    uint16_t set;
    uint8_t what;         /* enum mf_set_order */
    uint8_t outcome;      /* enum mf_set_outcome, once the order is done */
    uint8_t kgroup_bits;  /* ADD, CHANGE: the set has 2^this key groups */
    uint8_t reply_check;  /* ADD, CHANGE: enum mf_reply_check */
    uint8_t policy;       /* ADD, CHANGE: a sum of enum mf_read_policy */
    uint8_t place;        /* ADD: which place is being cleared; scratch */
    struct mf_address replicas[MF_REPLICAS_MAX]; /* ADD, CHANGE: who may say HELLO; port 0: nobody */
    uint32_t reserved;
};

/* Bytes of state for this configuration; 0 where a bound is violated. */
uint64_t mf_reads_size(const struct mf_reads_config *config);

/* `reads`: zeroed memory of mf_reads_size() bytes, aligned to 64. `epoch` is not used: each set has an incarnation. `key`: random
 * and secret; cookies are made with it. */
void mf_reads_init(struct mf_reads *reads, const struct mf_reads_config *config, uint32_t epoch, const uint64_t key[2]);

/* Takes one datagram. `now_ns` never decreases. Overwrites `out`. Returns the verdict on the datagram. */
MF_ENTRY mf_verdict mf_reads_packet(struct mf_reads MF_FAR *reads, uint64_t now_ns, const struct mf_datagram MF_FAR *in,
                                    struct mf_out MF_FAR *out);

/* Whether the answer may be longer than `room`: STATE is longer than what it answers. Changes nothing. */
MF_ENTRY int mf_reads_owes_more(const struct mf_reads MF_FAR *reads, const struct mf_datagram MF_FAR *in, uint32_t room);

/* Leases end by comparison with the time, so there is nothing to clean up. Overwrites `out`. Returns 0. */
MF_ENTRY uint32_t mf_reads_tick(struct mf_reads MF_FAR *reads, uint64_t now_ns, struct mf_out MF_FAR *out);

/* ADD clears the next MF_ORDER_KGROUPS key groups; the set is there when all are clear. Call it until it returns 1. */
MF_ENTRY uint32_t mf_reads_order(struct mf_reads MF_FAR *reads, struct mf_reads_order MF_FAR *order);

void mf_reads_stats(const struct mf_reads *reads, struct mf_reads_stats *stats);

/* A survey, for people who watch: what the switch knows of a replica. */
struct mf_surveyed_replica {
    uint64_t heard_ns; /* when the switch sent the STATE that its last HELLO answers, or the leader's last HEARTBEAT; 0: never heard */
    uint64_t matched;  /* its log is the leader's up to this index */
    uint32_t sent;     /* READs to be answered through the switch, since the session began */
    uint32_t answered; /* their READ_REPLYs */
    struct mf_address address; /* of the session, else as the operator has named it; port 0: none has this slot */
    uint16_t weight;   /* its chance of a READ by that of all; 0: it gets none */
    uint16_t is_taken; /* 1: it is in the session; 0: the leader does not take it for alive, or there was no session */
};

/* And of a set. */
struct mf_surveyed_set {
    uint64_t sid;           /* of the present or last session; 0: there was none */
    uint64_t lease_ends_ns; /* the session is active before */
    uint64_t lease_ns;
    uint64_t under_way;     /* WRITEs without a WRITE_REPLY of theirs or of a later one */
    uint16_t number;
    uint8_t leader;         /* its slot */
    uint8_t any_replica;    /* 1: each replica may answer each READ */
    uint8_t policy;         /* a sum of enum mf_read_policy */
    uint8_t reply_check;    /* enum mf_reply_check */
    uint16_t reserved;
    struct mf_surveyed_replica replicas[MF_REPLICAS_MAX]; /* by slot */
};

/* Copies what is known of the set at this place, below MF_SETS_MAX; returns 0 where there is none. Where the program runs meanwhile, in
 * the kernel, it may be a mix of two moments. */
int mf_reads_survey(const struct mf_reads *reads, uint32_t place, struct mf_surveyed_set *found);

/* For tests: checks all structures. 0: sound; else the line of the check in reads_check.c that failed. */
int mf_reads_check(const struct mf_reads *reads);

/* For tests: sizes of the structures above, and bounds, in the order of reads_check.c. */
void mf_reads_layout(uint64_t layout[12]);

#endif
