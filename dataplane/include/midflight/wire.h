/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * What the packets of all programs have in common: header, addresses, bounds. Each program has a file of its own
 * (tasks_wire.h).
 *
 * Every packet is one UDP datagram: a fixed part of at most 96 bytes, then records or payload. All integers are in network
 * byte order and aligned to their size, and every byte is named, so a switch parser reaches every field at a constant offset
 * (rule 9 of the house). A datagram never exceeds MF_PACKET_MAX, which passes every link that may carry IPv6 (T15).
 *
 * `docs/wire.md` explains each field, `docs/internals/wire.md` why the format is as it is; `crates/wire` is the same in Rust. A
 * test compares the three descriptions.
 */
#ifndef MIDFLIGHT_WIRE_H
#define MIDFLIGHT_WIRE_H

#include <stdint.h>

#include "midflight/target.h"

#define MF_MAGIC 0x4D46 /* "MF" */
#define MF_VERSION 3
#define MF_PACKET_MAX 1232 /* 1280 - 40 (IPv6) - 8 (UDP) */
#define MF_OP_VERSION 0    /* the operation of struct mf_version, in all versions of the format; those of programs begin at 1 */

/* 24 bytes that open every packet but VERSION. */
struct MF_WIRE mf_header {
    uint16_t magic;    /* MF_MAGIC: a stray datagram of another protocol is recognised at once */
    uint8_t version;   /* MF_VERSION: another one is answered by VERSION, so that users hear why nothing works */
    uint8_t operation; /* of the program: enum mf_operation of tasks_wire.h */
    uint8_t count;     /* records that follow: with the operation it says how long the datagram must be (T11) */
    uint8_t key;       /* which key made `tag`, so that keys can be changed while packets are under way. 0: no tag; no other
                        * value is accepted yet */
    uint16_t reserved; /* 0 */
    uint32_t epoch;    /* random, drawn by the switch at its start, never 0; 0 from a sender that does not know it yet. It tells
                        * packets for the switch that ran here before from those for this one (T9) */
    uint32_t sequence; /* the sender's, where the operation has one: tells repeats apart; an answer repeats it */
    uint64_t tag;      /* the place of a signature; 0 where `key` is 0. It is here before any key is, because a later version
                        * could not insert it without moving all fields behind it */
};

/* switch -> any: the answer to a packet of another version, itself never answered. Its 8 bytes are the same in all versions, and
 * it is the shortest packet, so it cannot help to flood anybody. */
struct MF_WIRE mf_version {
    uint16_t magic;      /* MF_MAGIC */
    uint8_t version;     /* the one that its sender speaks */
    uint8_t operation;   /* MF_OP_VERSION */
    uint8_t reserved[4]; /* 0: makes it one word of 64 bits, with room to say more one day */
};

/* An IPv6 address and a UDP port. */
struct MF_WIRE mf_address {
    uint8_t ip[16];    /* IPv4 as ::ffff:a.b.c.d, so that all addresses have one size and one comparison */
    uint16_t port;     /* UDP */
    uint16_t reserved; /* 0: an address is compared as whole words */
};

#endif
