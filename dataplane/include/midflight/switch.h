/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The interface of every program of the soft engine to its caller: a process, or XDP and TC programs in the kernel.
 *
 * A program NAME consists of pure functions over memory that the caller owns. Time and randomness are arguments; nothing is
 * allocated; no packet costs more than a constant amount of work. The functions have the same shape in every program:
 *
 *     uint64_t   mf_NAME_size(config)                             bytes of state; 0 where a bound is violated
 *     void       mf_NAME_init(state, config, epoch, key)          in zeroed memory of that size, aligned to 64
 *     mf_verdict mf_NAME_packet(state, now_ns, datagram, out)     takes a datagram; overwrites `out`
 *     uint32_t   mf_NAME_tick(state, now_ns, out)                 every 10 ms or so; overwrites `out`
 *     uint32_t   mf_NAME_order(state, order)                      does a part of an operator's order; call it until it returns 1
 *     int        mf_NAME_owes_more(state, datagram, room)         may it need more than one answer of `room` bytes to the sender?
 *     void       mf_NAME_stats(state, stats)                      what it has counted
 *     int        mf_NAME_check(state)                             for tests: 0, or the line of the check that failed
 */
#ifndef MIDFLIGHT_SWITCH_H
#define MIDFLIGHT_SWITCH_H

#include <stdint.h>

#include "midflight/verdict.h"
#include "midflight/wire.h"

#define MF_OUT_MAX 36      /* datagrams that one call may owe: answers, and one ASSIGN per task or slot */
#define MF_ORDER_BYTES 232 /* bytes of the largest order of any program */
#define MF_SURVEY_STEP 512 /* elements that one call of a survey visits */

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

/* Where a datagram is forwarded to. The program has rewritten its header in place; its payload is never copied. */
struct mf_forward {
    struct mf_address to;
    struct mf_address copy_to; /* the receiver of a copy; port 0: no copy */
    uint32_t header;           /* bytes at its start that the program may have rewritten: a multiple of 4, at most `length` */
    uint32_t length;           /* bytes of it that are forwarded: at most as many as came */
};

/* What a call owes to the network, in order: answers, or the datagram itself, forwarded; never both. */
struct mf_out {
    uint32_t count;        /* of `packet` */
    uint32_t is_genuine;   /* 1: only the holder of the address `from` can have sent the datagram, and it is no copy of an
                            * earlier one, or of one that the peer will soon follow by another. So the caller may learn from
                            * it where that peer is */
    uint32_t is_forwarded; /* 1: forward the datagram as `forward` says; the verdict is FORWARDED */
    uint32_t note;         /* scratch word of the program while it takes a packet; of no meaning afterwards */
    struct mf_out_packet packet[MF_OUT_MAX];
    struct mf_forward forward;
} __attribute__((aligned(8)));

#endif
