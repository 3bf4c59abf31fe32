/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The replicas program of the soft engine, in the shape that switch.h describes: the rules of an operator (NetRS, section IV-B), and
 * its monitor (IV-D). The selector is no part of it: a request that it is to choose for is forwarded to it.
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
};

/* What became of requests and answers. */
struct mf_replicas_stats {
    uint64_t packets[MF_KIND_END];      /* datagrams with a valid start, by kind */
    uint64_t reasons[MF_V_REPLICAS_END]; /* datagrams by verdict */
    uint64_t labelled;       /* requests of hosts of this rack whose group has an RSNode that is known */
    uint64_t degraded;       /* requests that went to their backup: their group is degraded, or has no RSNode */
    uint64_t without_rsnode; /* requests that went to their backup: their RSNode is not known here, or was removed */
    uint64_t selected;       /* requests that went to this operator's selector */
    uint64_t copied;         /* answers of which this operator's selector got a copy */
    uint64_t not_copied;     /* answers whose RSNode is not known here, or was removed: no selector got a copy */
    uint64_t delivered;      /* answers that went to clients of this rack */
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
    MF_RULE_END
};

enum mf_replicas_outcome {
    MF_RULE_DONE,
    MF_RULE_NO_ROOM, /* as many places as the configuration admits, or too many whose hashes are near */
    MF_RULE_BAD,     /* beyond a bound of the configuration; or a selector at the address of a server or operator, or the reverse */
};

struct mf_replicas_order {
    struct mf_address address;
    uint32_t marker; /* RACK: what answers of its servers are marked with */
    uint16_t rack;
    uint16_t group;
    uint16_t rsnode;
    uint8_t what;    /* enum mf_replicas_what */
    uint8_t outcome; /* enum mf_replicas_outcome, once the order is done */
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

/* Whether a copy is owed too: of an answer, to this operator's selector. Changes nothing. */
MF_ENTRY int mf_replicas_owes_more(const struct mf_replicas MF_FAR *replicas, const struct mf_datagram MF_FAR *in,
                                   uint32_t room);

/* There is nothing to clean up. Overwrites `out`. Returns 0. */
MF_ENTRY uint32_t mf_replicas_tick(struct mf_replicas MF_FAR *replicas, uint64_t now_ns, struct mf_out MF_FAR *out);

/* Sets a rule. Always done at once: returns 1. */
MF_ENTRY uint32_t mf_replicas_order(struct mf_replicas MF_FAR *replicas, struct mf_replicas_order MF_FAR *order);

void mf_replicas_stats(const struct mf_replicas *replicas, struct mf_replicas_stats *stats);

/* The monitor's counts of a traffic group: answers by the highest tier that they passed, 0 the topmost. */
void mf_replicas_counts(const struct mf_replicas *replicas, uint32_t group, uint64_t counts[MF_TIERS_MAX]);

/* For tests: checks all structures. 0: sound; else the line of the check in replicas_check.c that failed. */
int mf_replicas_check(const struct mf_replicas *replicas);

/* For tests: sizes of the structures above, and bounds, in the order of replicas_check.c. */
void mf_replicas_layout(uint64_t layout[10]);

#endif
