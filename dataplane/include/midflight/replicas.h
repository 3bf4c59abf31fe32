/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The replicas program of the soft engine, in the shape that switch.h describes: the rules of an operator (NetRS, section IV-B), and
 * its monitor (IV-D). It forwards a request that is to be chosen for to its selector; or, if the configuration says so, chooses itself.
 * `docs/internals/replicas.md` is the contract, `docs/internals/replicas-operator.md` explains the state.
 */
#ifndef MIDFLIGHT_REPLICAS_H
#define MIDFLIGHT_REPLICAS_H

#include "midflight/replicas_verdict.h"
#include "midflight/replicas_wire.h"
#include "midflight/switch.h"

#define MF_TIERS_MAX 4           /* tiers of switches: traffic of a group is counted by the highest one that it passes */
#define MF_PLACES_MAX (1u << 20) /* hosts, servers and operators */
#define MF_RACKS_MAX 65534
#define MF_GROUPS_MAX 65534
#define MF_RSNODES_MAX 65534
#define MF_NO_RACK 65535  /* an operator that no host is connected to */
#define MF_NO_GROUP 65535 /* a host that sends no requests */
#define MF_SERVERS_MAX 65535         /* that a selection may know */
#define MF_REPLICA_GROUPS_MAX (1u << 20)
#define MF_UNDER_WAY_MAX 65536
#define MF_SELECTORS_MAX (1u << 20)

/* Who chooses servers for requests that are served here. */
enum mf_selection {
    MF_SELECT_NONE, /* not this operator: its selector does */
    MF_SELECT_RANDOM,
    MF_SELECT_LEAST_OUTSTANDING,
    MF_SELECT_POWER_OF_TWO,
    MF_SELECT_C3,
    MF_SELECT_END
};

struct mf_replicas; /* an operator */

struct mf_replicas_config {
    uint32_t places;   /* room for so many hosts, servers and operators: 1 to MF_PLACES_MAX */
    uint32_t racks;    /* racks: 1 to MF_RACKS_MAX */
    uint32_t groups;   /* traffic groups: 1 to MF_GROUPS_MAX */
    uint32_t rsnodes;  /* RSNode ids are 1 to this: at most MF_RSNODES_MAX */
    uint32_t masks[MF_TIERS_MAX]; /* masks[i]: the bits that the markers of two racks have in common if packets between them pass no
                                   * tier above i, which is counted from the topmost, 0. masks[0] is 0; 0 beyond: no such tier */
    uint64_t cookie_ns; /* time is divided into intervals of this length; a cookie is valid in the interval that it was made in
                         * and in the next */
    uint32_t selection;      /* enum mf_selection; if it is not MF_SELECT_NONE, the four bounds below count */
    uint32_t servers;        /* that replica groups have: 1 to MF_SERVERS_MAX */
    uint32_t replica_groups; /* 1 to MF_REPLICA_GROUPS_MAX */
    uint32_t under_way;      /* requests that are remembered until they are answered: 1 to MF_UNDER_WAY_MAX, rounded up to a power
                              * of two. Further ones are sent, and their answers teach nothing */
    uint64_t expire_ns;      /* a request without an answer for this long does not count as outstanding any more */
};

/* What became of requests and answers. */
struct mf_replicas_stats {
    uint64_t packets[MF_KIND_END];      /* datagrams with a valid start, by kind */
    uint64_t reasons[MF_V_REPLICAS_END]; /* datagrams by verdict */
    uint64_t labelled;       /* requests of hosts of this rack whose group has an RSNode that is known */
    uint64_t degraded;       /* requests that went to their backup: their group is degraded, or has no RSNode */
    uint64_t without_rsnode; /* requests that went to their backup: their RSNode is not known here, or was removed */
    uint64_t selected;       /* requests that went to this operator's selector, or to the server that this operator has chosen */
    uint64_t copied;         /* answers of which this operator's selector got a copy */
    uint64_t not_copied;     /* answers whose RSNode is not known here, or was removed: no selector got a copy */
    uint64_t delivered;      /* answers that went to clients of this rack */
    /* Of an operator that chooses itself. */
    uint64_t unknown_group;     /* requests that went to their backup: their replica group is not known */
    uint64_t untracked;         /* requests that were sent while as many were under way as the configuration admits */
    uint64_t answered;          /* answers that were those of requests under way */
    uint64_t unmatched;         /* answers of no request under way: late, twice or forged */
    uint64_t without_status;    /* of those that were answered: without a status that can be read */
    uint64_t statuses_absurd;   /* statuses with values that no server can have */
    uint64_t statuses_outdated; /* statuses that a later one of the same server had overtaken */
    uint64_t expired;           /* requests whose answers did not come in time */
    uint64_t under_way;         /* requests under way now */
};

/* An order: a rule is set or removed, as the controller says; or something is read. */
enum mf_replicas_what {
    MF_RULE_OWN,     /* this operator: its rack, or MF_NO_RACK; where its selector is (`address`), port 0: it has none */
    MF_RULE_RACK,     /* a rack: its operator (`address`), its marker; port 0: it was removed */
    MF_RULE_HOST,     /* a host (`address`, port 0): its rack and traffic group */
    MF_RULE_SERVER,   /* a server (`address`): its rack */
    MF_RULE_OPERATOR, /* an operator (`address`): what comes from there is not a host's */
    MF_RULE_GONE,     /* `address` is none of these any more */
    MF_RULE_RSNODE,   /* an RSNode id: its operator (`address`); port 0: it was removed, or does not answer */
    MF_RULE_SERVE,    /* an RSNode id is this operator's */
    MF_RULE_GROUP,    /* a traffic group: its RSNode id, MF_ILLEGAL_RSNODE: it is degraded */
    MF_RULE_COUNTS,   /* reads `counts` of a traffic group, and changes nothing */
    MF_RULE_REPLICAS,  /* for an operator that chooses itself: a replica group (`number`) has these servers; it is never changed */
    MF_RULE_SELECTORS, /* the same: so many (`number`) choose among the same servers */
    MF_RULE_END
};

enum mf_replicas_outcome {
    MF_RULE_DONE,
    MF_RULE_NO_ROOM, /* as many places, servers or replica groups as the configuration admits, or too many whose hashes are near */
    MF_RULE_BAD,     /* beyond a bound of the configuration; or a selector at the address of a server or operator, or the reverse; or
                      * a replica group that has other servers already, or that is for an operator that chooses itself */
};

struct mf_replicas_order {
    struct mf_address address;
    uint32_t marker; /* RACK: what answers of its servers are marked with */
    uint16_t rack;
    uint16_t group;
    uint16_t rsnode;
    uint8_t what;    /* enum mf_replicas_what */
    uint8_t outcome; /* enum mf_replicas_outcome, once the order is done */
    uint32_t number; /* REPLICAS: the id of the group; SELECTORS: how many there are */
    uint32_t count;  /* REPLICAS: of its servers, at most MF_CANDIDATES_MAX */
    struct mf_address servers[MF_CANDIDATES_MAX];
    uint64_t counts[MF_TIERS_MAX]; /* COUNTS, once the order is done: answers by the highest tier that they passed, 0 the topmost */
};

/* Bytes of state for this configuration; 0 where a bound is violated. */
uint64_t mf_replicas_size(const struct mf_replicas_config *config);

/* `replicas`: zeroed memory of mf_replicas_size() bytes, aligned to 64. `epoch` is not used. `key`: random and secret. */
void mf_replicas_init(struct mf_replicas *replicas, const struct mf_replicas_config *config, uint32_t epoch,
                      const uint64_t key[2]);

/* Takes one datagram. `now_ns` never decreases. Overwrites `out`. Returns the verdict on the datagram. */
MF_ENTRY mf_verdict mf_replicas_packet(struct mf_replicas MF_FAR *replicas, uint64_t now_ns,
                                       const struct mf_datagram MF_FAR *in, struct mf_out MF_FAR *out);

/* Whether a copy is owed too: of an answer, to this operator's selector, if it does not choose itself. Changes nothing. */
MF_ENTRY int mf_replicas_owes_more(const struct mf_replicas MF_FAR *replicas, const struct mf_datagram MF_FAR *in,
                                   uint32_t room);

/* Requests whose answers did not come in time are not under way any more. Overwrites `out`. Returns how many were looked at. */
MF_ENTRY uint32_t mf_replicas_tick(struct mf_replicas MF_FAR *replicas, uint64_t now_ns, struct mf_out MF_FAR *out);

/* Sets a rule. Always done at once: returns 1. */
MF_ENTRY uint32_t mf_replicas_order(struct mf_replicas MF_FAR *replicas, struct mf_replicas_order MF_FAR *order);

void mf_replicas_stats(const struct mf_replicas *replicas, struct mf_replicas_stats *stats);

/* The monitor's counts of a traffic group: answers by the highest tier that they passed, 0 the topmost. */
void mf_replicas_counts(const struct mf_replicas *replicas, uint32_t group, uint64_t counts[MF_TIERS_MAX]);

/* A survey, for people who watch: what each table has in use. */

struct mf_surveyed_group {
    uint64_t answers; /* of a traffic group, as the monitor has counted */
    uint16_t group;
    uint16_t rsnode;  /* its id; MF_ILLEGAL_RSNODE: the group is degraded */
    uint32_t reserved;
};

struct mf_surveyed_rsnode {
    struct mf_address address; /* its operator's; port 0: it does not answer */
    uint16_t id;
    uint16_t is_here;          /* 1: it is this operator's */
};

/* A server, as an operator that chooses itself sees it. */
struct mf_surveyed_server {
    uint64_t known_until_ns; /* what was learned counts until then; 0: it never answered */
    uint64_t response;       /* averages of C3, else 0: a number of select_number.h, as the two that follow; nanoseconds */
    uint64_t service;        /* 0: none was ever reported */
    uint64_t queue;
    struct mf_address address;
    uint32_t outstanding;    /* requests that were neither answered nor have expired */
};

/* Each copies what is in use among the next MF_SURVEY_STEP elements of a table, and returns how many that are. `*next` is 0 at
 * first, and again when all were visited. Where the program runs meanwhile, in the kernel, an element may be a mix of two moments. */
uint32_t mf_replicas_survey_groups(const struct mf_replicas *replicas, uint32_t *next, struct mf_surveyed_group *found);
uint32_t mf_replicas_survey_rsnodes(const struct mf_replicas *replicas, uint32_t *next, struct mf_surveyed_rsnode *found);
uint32_t mf_replicas_survey_servers(const struct mf_replicas *replicas, uint32_t *next, struct mf_surveyed_server *found);

/* For tests: checks all structures. 0: sound; else the line of the check in replicas_check.c that failed. */
int mf_replicas_check(const struct mf_replicas *replicas);

/* For tests: sizes of the structures above, and bounds, in the order of replicas_check.c. */
void mf_replicas_layout(uint64_t layout[19]);

#endif
