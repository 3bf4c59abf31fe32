/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Common parts of all programs' packets: header, addresses, bounds. Each program has its own file (tasks_wire.h).
 *
 * Every packet is one UDP datagram: a fixed part of at most 96 bytes, then records or payload. Integers are in network byte order and
 * naturally aligned, and every byte is named, so a switch parser reaches every field at a constant offset. A datagram
 * has at most MF_PACKET_MAX bytes, which passes every link that may carry IPv6 (T15).
 *
 * `docs/wire.md` explains each field, `docs/internals/wire.md` the design; `crates/wire` is the same in Rust. A test compares the three.
 */
#ifndef MIDFLIGHT_WIRE_H
#define MIDFLIGHT_WIRE_H

#include <stdint.h>

#include "midflight/target.h"

#define MF_MAGIC 0x4D46 /* "MF" */
#define MF_VERSION 4
#define MF_PACKET_MAX 1232 /* 1280 - 40 (IPv6) - 8 (UDP) */
#define MF_OP_VERSION 0    /* operation of struct mf_version, in all versions; those of programs start at 1 */

/* 24 bytes at the start of every packet but VERSION. */
struct MF_WIRE mf_header {
    uint16_t magic;    /* MF_MAGIC: detects stray datagrams of other protocols */
    uint8_t version;   /* MF_VERSION: the switch answers another one by VERSION, so that users learn the cause */
    uint8_t operation; /* per program: enum mf_operation of tasks_wire.h */
    uint8_t count;     /* records that follow: with the operation it determines the datagram's length (T11) */
    uint8_t key;       /* key of `tag`, so that keys can change while packets are in flight. 0: no tag; no other value is accepted yet */
    uint16_t reserved; /* 0 */
    uint32_t epoch;    /* random, drawn by the switch at its start, never 0; 0 from a sender that does not know it yet. Identifies
                        * packets meant for an earlier run of the switch (T9) */
    uint32_t sequence; /* the sender's, for operations that have one: identifies repeats; an answer repeats it */
    uint64_t tag;      /* reserved for a signature; 0 if `key` is 0. A later version could not insert it without moving all fields after
                        * it */
};

/* switch -> any: the answer to a packet of another version; never answered itself. Its 8 bytes are the same in all versions, and it is the
 * shortest packet, so it cannot amplify a flood. */
struct MF_WIRE mf_version {
    uint16_t magic;      /* MF_MAGIC */
    uint8_t version;     /* the sender's */
    uint8_t operation;   /* MF_OP_VERSION */
    uint8_t reserved[4]; /* 0: reserved; pads to one 64-bit word */
};

struct MF_WIRE mf_address {
    uint8_t ip[16];    /* IPv4 as ::ffff:a.b.c.d, so all addresses have one size and one comparison */
    uint16_t port;
    uint16_t reserved; /* 0: addresses are compared as whole words */
};

#endif
