/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The packet formats of the replicas program: NetRS's (section IV-A), so they do not begin with mf_header. The fields have the
 * paper's widths and lie where that puts them; only the magic field says what a packet is. The application's payload begins with
 * mf_ends, so that a switch that is a program on a machine, and so always the destination of a datagram, knows where it goes.
 */
#ifndef MIDFLIGHT_REPLICAS_WIRE_H
#define MIDFLIGHT_REPLICAS_WIRE_H

#include "midflight/wire.h"

#define MF_PACKED __attribute__((packed)) /* where a field does not lie at a multiple of its size */

#define MF_NETRS_MAGIC 0x4D464E52 /* "MFNR" */
#define MF_NETRS_VERSION 1
#define MF_NETRS_XOR 0x80         /* f of the paper: this bit of the kind. With it, switches pass a packet on as any other */
#define MF_NETRS_STATUS_MAX 64    /* bytes of a server's status */
#define MF_CANDIDATES_MAX 8       /* replicas of a group */
#define MF_NO_RSNODE 0            /* RSNode id: not labelled yet */
#define MF_ILLEGAL_RSNODE 65535   /* RSNode id: the request's group is degraded */

/* The last byte of the magic field. */
#define MF_NETRS_KINDS(X)                                                                          \
    X(VERSION, 0)                                                                                  \
    X(REQUEST, 1)                                                                                  \
    X(RESPONSE, 2)                                                                                 \
    X(MONITORED, 3)                                                                                \
    X(COOKIE, 4)                                                                                   \
    X(DIRECT, 5)

enum mf_netrs_kind {
#define X(name, number) MF_KIND_##name = number,
    MF_NETRS_KINDS(X)
#undef X
    MF_KIND_END
};

/* What opens all of them. */
struct MF_PACKED mf_netrs {
    uint16_t rsnode;  /* RID: the operator that selects for this request; MF_NO_RSNODE, MF_ILLEGAL_RSNODE. An answer repeats it */
    uint32_t magic;   /* MF: MF_NETRS_MAGIC, */
    uint8_t version;  /* MF_NETRS_VERSION, */
    uint8_t kind;     /* enum mf_netrs_kind; with MF_NETRS_XOR on the way to a server, whose answer has it without */
    uint16_t retained; /* RV: the RSNode's; an answer repeats it */
};

/* client -> operator -> RSNode (REQUEST); RSNode -> server (RESPONSE with MF_NETRS_XOR), operator -> server where the group is
 * degraded (MONITORED with it), client -> server (DIRECT with it). Then mf_ends and what the application asks. */
struct MF_PACKED mf_netrs_request {
    struct mf_netrs start;
    uint8_t group[3]; /* RGID: which replicas have the key; the most significant byte first. Never used again for others */
};

/* server -> operator -> RSNode (RESPONSE), -> client's operator -> client (MONITORED), server -> client (DIRECT). Then
 * `status_length` bytes of status, mf_ends, and what the application answers. */
struct MF_PACKED mf_netrs_response {
    struct mf_netrs start;
    uint32_t marker;        /* SM: where the server is: set by the operator of its rack */
    uint16_t status_length; /* SSL: at most MF_NETRS_STATUS_MAX */
};

/* SS: what a server says of itself. Another length is no status of this version: it is not read. */
struct MF_PACKED mf_server_status {
    uint16_t queue;      /* requests that wait, without those that are being served */
    uint16_t sequence;   /* counts the server's answers: an older one than the last is not read */
    uint32_t service_us; /* how long this request was served, without its wait; 0: not known */
};

/* The ends of a request: what opens the application's payload. A response repeats it. */
struct MF_WIRE mf_ends {
    struct mf_address client; /* from the client: its cookie in the first 8 bytes of `ip`, the rest 0. Then where the answer goes */
    struct mf_address server; /* from the client: its backup; from the selector on, the server that was chosen */
    uint64_t request;         /* which request of this client: a random number, which an answer repeats: who does not see the
                               * request cannot forge one */
    uint64_t tag;             /* the place of a signature by client or server; 0 until there is a key */
};

_Static_assert(sizeof(struct mf_netrs) == 10 && sizeof(struct mf_netrs_request) == 13 &&
                   sizeof(struct mf_netrs_response) == 16 && sizeof(struct mf_server_status) == 8 &&
                   sizeof(struct mf_ends) == 56,
               "the paper's widths");

#endif
