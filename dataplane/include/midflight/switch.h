/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The interface of every program of the soft engine to its caller: a process, or the XDP and TC programs in the kernel.
 *
 * A program NAME consists of pure functions over memory that the caller owns. Time and randomness are arguments. Functions allocate
 * nothing, and each packet costs a bounded amount of work. All programs have the same functions:
 *
 *     uint64_t   mf_NAME_size(config)                             bytes of state; 0 if a bound is violated
 *     void       mf_NAME_init(state, config, epoch, key)          in zeroed memory of that size, aligned to 64
 *     mf_verdict mf_NAME_packet(state, now_ns, datagram, out)     handles a datagram; overwrites `out`
 *     uint32_t   mf_NAME_tick(state, now_ns, out)                 about every 10 ms; overwrites `out`
 *     uint32_t   mf_NAME_order(state, order)                      executes part of an operator's order; call until it returns 1
 *     int        mf_NAME_owes_more(state, datagram, room)         whether it may need more than one answer of `room` bytes to the sender
 *     void       mf_NAME_stats(state, stats)                      copies the counts
 *     int        mf_NAME_check(state)                             for tests: 0, or the line of the failed check
 */
#ifndef MIDFLIGHT_SWITCH_H
#define MIDFLIGHT_SWITCH_H

#include <stdint.h>

#include "midflight/verdict.h"
#include "midflight/wire.h"

#define MF_OUT_MAX 36      /* most datagrams that one call may send: answers, and one ASSIGN per task or slot */
#define MF_ORDER_BYTES 232 /* bytes of the largest order of any program */
#define MF_SURVEY_STEP 512 /* elements that one call of a survey visits */

struct mf_datagram {
    struct mf_address from;
    uint32_t length;
    uint8_t MF_FAR *data; /* a program may rewrite it: its header, or what it notes in reserved fields */
};

struct mf_out_packet {
    struct mf_address to;
    uint32_t length;
    uint8_t data[MF_PACKET_MAX];
    uint32_t appended; /* tasks: bytes that arguments will add to an ASSIGN at the end of the call */
};

/* Where to forward a datagram. The program has rewritten its header in place; the payload is never copied. */
struct mf_forward {
    struct mf_address to;
    struct mf_address copy_to; /* receiver of a copy; port 0: no copy */
    uint32_t header;           /* leading bytes that the program may have rewritten: a multiple of 4, at most `length` */
    uint32_t length;           /* bytes to forward: at most as many as came */
};

/* What a call sends, in order: either answers, or the forwarded datagram. */
struct mf_out {
    uint32_t count;        /* of `packet` */
    uint32_t is_genuine;   /* 1: only the owner of the address `from` can have sent the datagram, and it is neither a copy of an earlier
                            * one nor about to be followed by another of that peer. So the caller may learn the peer's next hop from it */
    uint32_t is_forwarded; /* 1: forward the datagram as `forward` says; the outcome is FORWARDED */
    uint32_t note;         /* the program's scratch word while it handles a packet */
    struct mf_out_packet packet[MF_OUT_MAX];
    struct mf_forward forward;
} __attribute__((aligned(8)));

#endif
