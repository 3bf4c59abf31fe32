/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * What every program of the soft engine takes and gives, whoever runs it: a process, or XDP and TC programs in the kernel.
 *
 * A program NAME is pure functions over memory that the caller owns. Time and randomness are arguments; nothing is
 * allocated; no packet costs more than a constant amount of work. They all have one shape:
 *
 *     uint64_t   mf_NAME_size(config)                             bytes of state; 0 where a bound is violated
 *     void       mf_NAME_init(state, config, epoch, key)          in zeroed memory of that size, aligned to 64
 *     mf_verdict mf_NAME_packet(state, now_ns, datagram, out)     takes a datagram; overwrites `out`
 *     uint32_t   mf_NAME_tick(state, now_ns, out)                 every 10 ms or so; overwrites `out`
 *     uint32_t   mf_NAME_order(state, order)                      what the operator wants; to be called until it returns 1
 *     int        mf_NAME_owes_more(state, datagram, room)         does one answer of `room` bytes to the sender suffice?
 *     void       mf_NAME_stats(state, stats)                      what it has counted
 *     int        mf_NAME_check(state)                             for tests: 0, or the line of the check that failed
 */
#ifndef MIDFLIGHT_SWITCH_H
#define MIDFLIGHT_SWITCH_H

#include <stdint.h>

#include "midflight/verdict.h"
#include "midflight/wire.h"

#define MF_OUT_MAX 36     /* datagrams that one call may owe: answers, and one ASSIGN per task or slot */
#define MF_ORDER_BYTES 64 /* the largest order */

struct mf_datagram {
    struct mf_address from;
    uint32_t length;
    uint8_t MF_FAR *data; /* a program that forwards the datagram rewrites its header here */
};

struct mf_out_packet {
    struct mf_address to;
    uint32_t length;
    uint8_t data[MF_PACKET_MAX];
    uint8_t reserved[4];
};

/* Where a datagram goes on to that was FORWARDED. Its header was rewritten in place; its payload is never copied. */
struct mf_forward {
    struct mf_address to;
    struct mf_address copy_to; /* and who gets a copy; port 0: nobody */
    uint32_t header;           /* bytes at its start that may have been rewritten */
    uint32_t length;           /* bytes of it that go on */
};

/* What a call owes to the network, in order. */
struct mf_out {
    uint32_t count;        /* of `packet` */
    uint32_t is_genuine;   /* 1: nobody but who is at `from` can have sent the datagram, and it is no copy of an earlier one:
                            * the way that it came is the way to him */
    uint32_t is_forwarded; /* 1: the datagram goes on as `forward` says; the verdict is FORWARDED */
    uint32_t note;         /* the program's own, while it takes a packet */
    struct mf_forward forward;
    struct mf_out_packet packet[MF_OUT_MAX];
} __attribute__((aligned(8)));

#endif
