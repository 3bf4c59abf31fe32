/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Packet formats of the cache program: NetRS's (section IV-A), without mf_header. Fields have the paper's widths and offsets; only the
 * magic field identifies a packet. The application's payload begins with mf_ends, because a switch that runs on a machine is the
 * destination of each datagram and needs its final one.
 */
#ifndef MIDFLIGHT_CACHE_WIRE_H
#define MIDFLIGHT_CACHE_WIRE_H

#include "midflight/wire.h"

#define MF_PACKED __attribute__((packed)) /* for fields that are not naturally aligned */

#define MF_NETRS_MAGIC 0x4D464E52 /* "MFNR" */
#define MF_NETRS_VERSION 1
#define MF_NETRS_XOR 0x80         /* the paper's f: with this bit of the kind, switches forward a packet as any other */
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

/* The start of every NetRS packet. */
struct MF_PACKED mf_netrs {
    uint16_t rsnode;  /* RID: the operator that selects for this request; MF_NO_RSNODE, MF_ILLEGAL_RSNODE. An answer repeats it */
    uint32_t magic;   /* MF: MF_NETRS_MAGIC, */
    uint8_t version;  /* MF_NETRS_VERSION, */
    uint8_t kind;     /* enum mf_netrs_kind; with MF_NETRS_XOR on the way to a server, which answers without it */
    uint16_t retained; /* RV: for the RSNode's use; an answer repeats it */
};

/* client -> operator -> RSNode (REQUEST); RSNode -> server (RESPONSE with MF_NETRS_XOR), operator -> server if the group is degraded
 * (MONITORED with it), client -> server (DIRECT with it). mf_ends and the application's request follow. */
struct MF_PACKED mf_netrs_request {
    struct mf_netrs start;
    uint8_t group[3]; /* RGID: the replica group of the key, most significant byte first. Never reused for other servers */
};

/* server -> operator -> RSNode (RESPONSE), -> client's operator -> client (MONITORED), server -> client (DIRECT). `status_length` bytes of
 * status, mf_ends and the application's response follow. */
struct MF_PACKED mf_netrs_response {
    struct mf_netrs start;
    uint32_t marker;        /* SM: location of the server, set by the operator of its rack */
    uint16_t status_length; /* SSL: at most MF_NETRS_STATUS_MAX */
};

/* SS: the server's status. Receivers ignore one of another length. */
struct MF_PACKED mf_server_status {
    uint16_t queue;      /* requests waiting, without those being served */
    uint16_t sequence;   /* number of the server's answer; receivers ignore one that is not the latest */
    uint32_t service_us; /* service time of this request without its wait; 0: unknown */
};

/* The ends of a request: the start of the application's payload. A response repeats it. */
struct MF_WIRE mf_ends {
    struct mf_address client; /* from the client: its cookie in the first 8 bytes of `ip`, then 0. Later: where the answer goes */
    struct mf_address server; /* from the client: its backup; from the selector on, the selected server */
    uint64_t request;         /* random request id, repeated by the answer, so only a sender that saw the request can forge one */
    uint64_t tag;             /* reserved for a signature by client or server; 0 until there is a key */
};

_Static_assert(sizeof(struct mf_netrs) == 10 && sizeof(struct mf_netrs_request) == 13 &&
                   sizeof(struct mf_netrs_response) == 16 && sizeof(struct mf_server_status) == 8 &&
                   sizeof(struct mf_ends) == 56,
               "the paper's widths");

#endif
