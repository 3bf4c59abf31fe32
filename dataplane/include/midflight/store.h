/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The store program of the soft engine, with the interface of switch.h: sends each read to an up-to-date replica. `docs/internals/store.md`
 * is the contract, `docs/internals/store-switch.md` explains the state.
 */
#ifndef MIDFLIGHT_STORE_H
#define MIDFLIGHT_STORE_H

#include "midflight/store_verdict.h"
#include "midflight/store_wire.h"
#include "midflight/switch.h"

#define MF_SETS_MAX 64
#define MF_LEASE_MAX_NS (1ull << 42) /* more than an hour; keeps a time plus a lease from wrapping */
#define MF_ORDER_KGROUPS 4096        /* key groups cleared by one call of an order */
#define MF_PROBES 4                  /* READs per replica after a HEARTBEAT that are not answered directly */

struct mf_store;

struct mf_store_config {
    uint32_t sets;        /* capacity: 1 to MF_SETS_MAX */
    uint32_t kgroup_bits; /* at most 2^this key groups per set: 0 to MF_KGROUP_BITS_MAX */
    uint64_t lease_ns;    /* lease T of a set whose order gives none: 1 to MF_LEASE_MAX_NS */
    uint64_t cookie_ns;   /* length of a cookie interval; a cookie is valid in its own interval and the next */
};

struct mf_set_stats {
    uint64_t to_followers; /* READs of stable key groups sent to followers */
    uint64_t to_leader;    /* READs of stable key groups sent to the leader */
    uint64_t leader_only;  /* READs that only the leader may answer */
    uint64_t direct;       /* READs that a replica may answer directly; also counted above */
    uint64_t turned_back;  /* replies of followers that the switch turned back into READs */
    uint64_t outdated;     /* late replies of the leader, whose clients were told to retry */
    uint64_t writes;
    uint64_t closed;       /* WRITE_REPLYs that closed their key group */
    uint64_t sessions;
    uint64_t unserved;     /* requests without a session here, of clients that no switch serves */
    uint32_t unstable;
    uint16_t set;
    uint16_t is_used;      /* 0: this place is free */
};

struct mf_store_stats {
    uint64_t packets[MF_STORE_OP_END];   /* datagrams with a valid header, by operation */
    uint64_t reasons[MF_V_STORE_END];    /* datagrams by drop reason */
    struct mf_set_stats sets[MF_SETS_MAX];
};

/* The operator's order. CHANGE alters reply check, policy and the replicas that may say HELLO. */
enum mf_set_order { MF_SET_ADD, MF_SET_REMOVE, MF_SET_CHANGE };

enum mf_set_outcome {
    MF_SET_DONE,
    MF_SET_EXISTS,  /* ADD: the number is taken */
    MF_SET_NO_ROOM, /* ADD: the configured number of sets is reached */
    MF_SET_BAD,     /* ADD, CHANGE: a value is out of bounds */
    MF_SET_UNKNOWN, /* REMOVE, CHANGE: no set has this number */
    MF_SET_FROZEN,  /* CHANGE: the lease or the number of key groups would change */
};

/* Which followers' replies go to the client. STRICT: those whose session and SEQ are still the key group's. DIRECT: all, as with RELAXED,
 * and most bypass the switch. */
enum mf_reply_check { MF_REPLY_STRICT, MF_REPLY_RELAXED, MF_REPLY_DIRECT, MF_REPLY_END };

/* How a consistent replica is chosen for a READ: a sum. RANDOM: uniformly. */
enum mf_read_policy {
    MF_POLICY_RANDOM = 0,
    MF_POLICY_AVOID_LEADER = 1, /* avoid the leader while writes are in flight, if there is another replica */
    MF_POLICY_LOAD_AWARE = 2,   /* in proportion to the weights in the HEARTBEAT */
    MF_POLICY_ALL = 3,
};

struct mf_store_order {
    uint64_t incarnation; /* ADD: random, drawn by the caller, not 0 */
    uint64_t lease_ns;    /* ADD, CHANGE: T; 0: the configured default */
    uint32_t next;        /* next key group to clear; 0 at first */
    uint16_t set;
    uint8_t what;         /* enum mf_set_order */
    uint8_t outcome;      /* enum mf_set_outcome, valid once the order is done */
    uint8_t kgroup_bits;  /* ADD, CHANGE: the set has 2^this key groups */
    uint8_t reply_check;  /* ADD, CHANGE: enum mf_reply_check */
    uint8_t policy;       /* ADD, CHANGE: a sum of enum mf_read_policy */
    uint8_t place;        /* ADD: the place being cleared; scratch */
    struct mf_address replicas[MF_REPLICAS_MAX]; /* ADD, CHANGE: replicas that may say HELLO; port 0: unused */
    uint32_t reserved;
};

/* Bytes of state; 0 if a bound is violated. */
uint64_t mf_store_size(const struct mf_store_config *config);

/* `store`: zeroed memory of mf_store_size() bytes, aligned to 64. `epoch` is ignored: each set has an incarnation. `key`: random and
 * secret, for cookies. */
void mf_store_init(struct mf_store *store, const struct mf_store_config *config, uint32_t epoch, const uint64_t key[2]);

/* Handles one datagram and overwrites `out`. `now_ns` must not decrease. */
MF_ENTRY mf_verdict mf_store_packet(struct mf_store MF_FAR *store, uint64_t now_ns, const struct mf_datagram MF_FAR *in,
                                    struct mf_out MF_FAR *out);

/* Whether the answer may exceed `room`: STATE is longer than its request. Changes nothing. */
MF_ENTRY int mf_store_owes_more(const struct mf_store MF_FAR *store, const struct mf_datagram MF_FAR *in, uint32_t room);

/* Does nothing but clear `out`, since leases end by comparison with the time. Returns 0. */
MF_ENTRY uint32_t mf_store_tick(struct mf_store MF_FAR *store, uint64_t now_ns, struct mf_out MF_FAR *out);

/* ADD clears the next MF_ORDER_KGROUPS key groups per call; the set exists once all are clear. Call until it returns 1. */
MF_ENTRY uint32_t mf_store_order(struct mf_store MF_FAR *store, struct mf_store_order MF_FAR *order);

void mf_store_stats(const struct mf_store *store, struct mf_store_stats *stats);

/* Survey of a replica, as the switch sees it. */
struct mf_surveyed_replica {
    uint64_t heard_ns; /* when the switch sent the STATE that its last HELLO (or the leader's last HEARTBEAT) echoes; 0: never heard */
    uint64_t matched;  /* its log equals the leader's up to this index */
    uint32_t sent;     /* READs since the session began whose replies come through the switch */
    uint32_t answered; /* READ_REPLYs received for them */
    struct mf_address address; /* from the session, or else from the operator; port 0: the slot is free */
    uint16_t weight;   /* share of the READs, relative to the others; 0: none */
    uint16_t is_taken; /* 1: in the session; 0: the leader considers it dead, or there was no session */
};

struct mf_surveyed_set {
    uint64_t sid;
    uint64_t lease_ends_ns; /* when the session's lease ends */
    uint64_t lease_ns;
    uint64_t under_way;     /* WRITEs without a WRITE_REPLY for them or a later one */
    uint16_t number;
    uint8_t leader;         /* slot */
    uint8_t any_replica;    /* 1: every replica may answer every READ */
    uint8_t policy;         /* a sum of enum mf_read_policy */
    uint8_t reply_check;    /* enum mf_reply_check */
    uint16_t reserved;
    struct mf_surveyed_replica replicas[MF_REPLICAS_MAX]; /* by slot */
};

/* Copies what is known of the set at this place, below MF_SETS_MAX. Returns 0 if the place is free. In the kernel, packets arrive during
 * the copy, so it may mix two states. */
int mf_store_survey(const struct mf_store *store, uint32_t place, struct mf_surveyed_set *found);

/* For tests: checks all structures. Returns 0, or the line of the failed check in store_check.c. */
int mf_store_check(const struct mf_store *store);

/* For tests: sizes of the structures above and bounds, in the order of store_check.c. */
void mf_store_layout(uint64_t layout[12]);

#endif
