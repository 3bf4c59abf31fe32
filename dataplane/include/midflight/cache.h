/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The cache program of the soft engine, with the interface of switch.h: rules and monitor of a NetRS operator (sections IV-B and IV-D).
 * It forwards a request that needs a server to its selector, or, if configured, selects servers itself. `docs/internals/cache.md` is the
 * contract, `docs/internals/cache-operator.md` explains the state.
 */
#ifndef MIDFLIGHT_CACHE_H
#define MIDFLIGHT_CACHE_H

#include "midflight/cache_verdict.h"
#include "midflight/cache_wire.h"
#include "midflight/switch.h"

#define MF_TIERS_MAX 4           /* tiers of switches; the highest tier on the path counts a packet for its traffic group */
#define MF_PLACES_MAX (1u << 20) /* hosts, servers and operators together */
#define MF_RACKS_MAX 65534
#define MF_GROUPS_MAX 65534
#define MF_RSNODES_MAX 65534
#define MF_NO_RACK 65535  /* operator without hosts */
#define MF_NO_GROUP 65535 /* host that sends no requests */
#define MF_SERVERS_MAX 65535         /* servers known to a selection */
#define MF_REPLICA_GROUPS_MAX (1u << 20)
#define MF_UNDER_WAY_MAX 65536
#define MF_SELECTORS_MAX (1u << 20)

/* The algorithm that selects servers in this operator. */
enum mf_selection {
    MF_SELECT_NONE, /* none: a separate selector does it */
    MF_SELECT_RANDOM,
    MF_SELECT_LEAST_OUTSTANDING,
    MF_SELECT_POWER_OF_TWO,
    MF_SELECT_C3,
    MF_SELECT_END
};

struct mf_cache;

struct mf_cache_config {
    uint32_t places;   /* hosts, servers and operators: 1 to MF_PLACES_MAX */
    uint32_t racks;    /* racks: 1 to MF_RACKS_MAX */
    uint32_t groups;   /* traffic groups: 1 to MF_GROUPS_MAX */
    uint32_t rsnodes;  /* RSNode ids are 1 to this, at most MF_RSNODES_MAX */
    uint32_t masks[MF_TIERS_MAX]; /* masks[i]: the bits that the markers of two racks share if packets between them pass no tier above i;
                                   * tier 0 is the topmost. masks[0] is 0; further zeros mark missing tiers */
    uint64_t cookie_ns; /* length of a cookie interval; a cookie is valid in its own interval and the next */
    uint32_t selection;      /* enum mf_selection; the four fields below apply unless it is MF_SELECT_NONE */
    uint32_t servers;        /* servers in replica groups: 1 to MF_SERVERS_MAX */
    uint32_t replica_groups; /* 1 to MF_REPLICA_GROUPS_MAX */
    uint32_t under_way;      /* requests tracked until answered: 1 to MF_UNDER_WAY_MAX, rounded up to a power of two. Further ones are
                              * sent, but their answers are not evaluated */
    uint64_t expire_ns;      /* a request unanswered for this long no longer counts as outstanding */
};

struct mf_cache_stats {
    uint64_t packets[MF_KIND_END];      /* datagrams with a valid start, by kind */
    uint64_t reasons[MF_V_CACHE_END]; /* datagrams by drop reason */
    uint64_t labelled;       /* requests of this rack's hosts whose group has a known RSNode */
    uint64_t degraded;       /* requests sent to their backup: their group is degraded or has no RSNode */
    uint64_t without_rsnode; /* requests sent to their backup: their RSNode is unknown here or removed */
    uint64_t selected;       /* requests sent to this operator's selector, or to the server it selected */
    uint64_t copied;
    uint64_t not_copied;     /* answers not copied: their RSNode is unknown here or removed */
    uint64_t delivered;      /* answers delivered to clients of this rack */
    /* Only if this operator selects servers. */
    uint64_t unknown_group;     /* requests sent to their backup: unknown replica group */
    uint64_t untracked;         /* requests sent untracked: `under_way` was full */
    uint64_t answered;          /* answers that matched a tracked request */
    uint64_t unmatched;         /* answers that matched none: late, duplicate or forged */
    uint64_t without_status;    /* matched answers without a readable status */
    uint64_t statuses_invalid;  /* statuses with impossible values */
    uint64_t statuses_outdated; /* statuses older than the server's last */
    uint64_t expired;
    uint64_t under_way;         /* requests in flight now */
};

/* The controller's order: set or remove a rule, or read counts. */
enum mf_cache_what {
    MF_RULE_OWN,     /* this operator: its rack, or MF_NO_RACK, and its selector's `address`; port 0: no selector */
    MF_RULE_RACK,     /* a rack: its operator (`address`) and marker; port 0: removed */
    MF_RULE_HOST,     /* a host (`address`, port 0): its rack and traffic group */
    MF_RULE_SERVER,   /* a server (`address`): its rack */
    MF_RULE_OPERATOR, /* an operator (`address`): packets from there are not a host's */
    MF_RULE_GONE,     /* removes HOST, SERVER or OPERATOR at `address` */
    MF_RULE_RSNODE,   /* an RSNode id: its operator (`address`); port 0: removed, or not responding */
    MF_RULE_SERVE,    /* assigns an RSNode id to this operator */
    MF_RULE_GROUP,    /* a traffic group: its RSNode id; MF_ILLEGAL_RSNODE: degraded */
    MF_RULE_COUNTS,   /* reads `counts` of a traffic group; changes nothing */
    MF_RULE_REPLICAS,  /* if this operator selects servers: the servers of replica group `number`; cannot be changed later */
    MF_RULE_SELECTORS, /* if this operator selects servers: the number of selectors that share its servers */
    MF_RULE_END
};

enum mf_cache_outcome {
    MF_RULE_DONE,
    MF_RULE_NO_ROOM, /* the configured number of places, servers or replica groups is reached, or too many hashes collide */
    MF_RULE_BAD,     /* out of bounds; or a selector has the address of a server or operator, or vice versa; or the replica group already
                      * has other servers, or this operator does not select itself */
};

struct mf_cache_order {
    struct mf_address address;
    uint32_t marker; /* RACK: marker of its servers' answers */
    uint16_t rack;
    uint16_t group;
    uint16_t rsnode;
    uint8_t what;    /* enum mf_cache_what */
    uint8_t outcome; /* enum mf_cache_outcome, valid once the order is done */
    uint32_t number; /* REPLICAS: the group's id; SELECTORS: how many */
    uint32_t count;  /* REPLICAS: number of servers, at most MF_CANDIDATES_MAX */
    struct mf_address servers[MF_CANDIDATES_MAX];
    uint64_t counts[MF_TIERS_MAX]; /* COUNTS: answers by the highest tier passed, 0 the topmost; valid once the order is done */
};

/* Bytes of state; 0 if a bound is violated. */
uint64_t mf_cache_size(const struct mf_cache_config *config);

/* `cache`: zeroed memory of mf_cache_size() bytes, aligned to 64. `epoch` is ignored. `key`: random and secret. */
void mf_cache_init(struct mf_cache *cache, const struct mf_cache_config *config, uint32_t epoch,
                      const uint64_t key[2]);

/* Handles one datagram and overwrites `out`. `now_ns` must not decrease. */
MF_ENTRY mf_verdict mf_cache_packet(struct mf_cache MF_FAR *cache, uint64_t now_ns,
                                       const struct mf_datagram MF_FAR *in, struct mf_out MF_FAR *out);

/* Whether an answer must also be copied to a separate selector of this operator. Changes nothing. */
MF_ENTRY int mf_cache_owes_more(const struct mf_cache MF_FAR *cache, const struct mf_datagram MF_FAR *in,
                                   uint32_t room);

/* Expires requests whose answer timed out. Overwrites `out`. Returns how many it looked at. */
MF_ENTRY uint32_t mf_cache_tick(struct mf_cache MF_FAR *cache, uint64_t now_ns, struct mf_out MF_FAR *out);

/* Executes an order. Always done at once: returns 1. */
MF_ENTRY uint32_t mf_cache_order(struct mf_cache MF_FAR *cache, struct mf_cache_order MF_FAR *order);

void mf_cache_stats(const struct mf_cache *cache, struct mf_cache_stats *stats);

/* The monitor's counts of a traffic group: answers by the highest tier passed, 0 the topmost. */
void mf_cache_counts(const struct mf_cache *cache, uint32_t group, uint64_t counts[MF_TIERS_MAX]);

/* Survey of each table's used elements. */

struct mf_surveyed_group {
    uint64_t answers; /* counted by the monitor for the group */
    uint16_t group;
    uint16_t rsnode;  /* MF_ILLEGAL_RSNODE: the group is degraded */
    uint32_t reserved;
};

struct mf_surveyed_rsnode {
    struct mf_address address; /* its operator; port 0: not responding */
    uint16_t id;
    uint16_t is_here;          /* 1: this operator */
};

/* A server, as seen by an operator that selects servers. */
struct mf_surveyed_server {
    uint64_t known_until_ns; /* its statistics are valid until then; 0: it never answered */
    uint64_t response;       /* C3 averages, else 0; a number of select_number.h, like the next two; nanoseconds */
    uint64_t service;        /* 0: never reported */
    uint64_t queue;
    struct mf_address address;
    uint32_t outstanding;    /* requests neither answered nor expired */
};

/* Each function copies the used ones of the next MF_SURVEY_STEP elements of a table and returns their number. `*next` is 0 at first, and
 * again after the last element. In the kernel, packets arrive during the copy, so an element may mix two states. */
uint32_t mf_cache_survey_groups(const struct mf_cache *cache, uint32_t *next, struct mf_surveyed_group *found);
uint32_t mf_cache_survey_rsnodes(const struct mf_cache *cache, uint32_t *next, struct mf_surveyed_rsnode *found);
uint32_t mf_cache_survey_servers(const struct mf_cache *cache, uint32_t *next, struct mf_surveyed_server *found);

/* For tests: checks all structures. Returns 0, or the line of the failed check in cache_check.c. */
int mf_cache_check(const struct mf_cache *cache);

/* For tests: sizes of the structures above and bounds, in the order of cache_check.c. */
void mf_cache_layout(uint64_t layout[19]);

#endif
