/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * What the packets of all programs have in common: header, addresses, bounds. Each program has a file of its own
 * (tasks_wire.h).
 *
 * Every packet is one UDP datagram: a fixed part of at most 96 bytes, then records or payload. All integers are in network
 * byte order and aligned to their size, and every byte is named, so a switch parser reaches every field at a constant offset
 * (rule 9 of the house). A datagram never exceeds MF_PACKET_MAX, which passes every link that may carry IPv6 (T15).
 *
 * `docs/wire.md` explains each field to people; `crates/wire` is the same in Rust. A test compares the three.
 */
#ifndef MIDFLIGHT_WIRE_H
#define MIDFLIGHT_WIRE_H

#include <stdint.h>

#include "midflight/target.h"

#define MF_MAGIC 0x4D46 /* "MF" */
#define MF_VERSION 2
#define MF_PACKET_MAX 1232 /* 1280 - 40 (IPv6) - 8 (UDP) */
#define MF_OP_VERSION 0    /* the operation of struct mf_version, in all versions of the format; a program's begin at 1 */

/* 24 bytes that open every packet but VERSION. */
struct MF_WIRE mf_header {
    uint16_t magic;    /* MF_MAGIC */
    uint8_t version;   /* MF_VERSION */
    uint8_t operation; /* of the program: enum mf_operation of tasks_wire.h */
    uint8_t count;     /* records that follow */
    uint8_t key;       /* names the key of `tag`; 0: none, and none other is taken yet */
    uint16_t reserved; /* 0 */
    uint32_t epoch;    /* the switch's, drawn at its start, never 0; 0 from those who do not know it */
    uint32_t sequence; /* the sender's, where the operation has one; an answer repeats it */
    uint64_t tag;      /* 0 where `key` is 0 */
};

/* switch -> any: the answer to a packet of another version. 8 bytes, the same in all versions, and shorter than any other
 * packet. Never answered. */
struct MF_WIRE mf_version {
    uint16_t magic;    /* MF_MAGIC */
    uint8_t version;   /* which the sender speaks */
    uint8_t operation; /* MF_OP_VERSION */
    uint8_t reserved[4];
};

/* An IPv6 address (IPv4 as ::ffff:a.b.c.d) and a UDP port. */
struct MF_WIRE mf_address {
    uint8_t ip[16];
    uint16_t port;
    uint16_t reserved; /* 0 */
};

#endif
