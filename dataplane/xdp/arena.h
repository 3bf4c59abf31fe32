/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The arena: all memory that the shells share, between each other and with user space, which maps it and lays the program's
 * state out in it. An address here is an offset from the arena's start. `crates/dataplane/src/kernel/layout.rs` says the same; a
 * test compares the two.
 *
 *     0x00001000   struct mf_control
 *     0x00008000   what the next process must know of this one's state: user space's alone (`kept.rs`)
 *     0x00010000   scratch areas of 64 KiB: the first for calls from user space, then one for each CPU
 *     0x01100000   the next hop cache
 *     0x02000000   the program's state; behind it, what a benchmark or test brings
 *
 * A BPF program cannot make pages: a store to one that user space has not touched is lost. So user space touches them all.
 */
#ifndef MIDFLIGHT_ARENA_H
#define MIDFLIGHT_ARENA_H

#include "midflight/switch.h"

#define MF_CONTROL_AT 0x00001000
#define MF_KEPT_AT 0x00008000
#define MF_SCRATCH_AT 0x00010000
#define MF_SCRATCH_BYTES 0x00010000
#define MF_SCRATCHES 257 /* user space's, and one for each of 256 CPUs */
#define MF_NEXT_HOPS_AT 0x01100000
#define MF_NEXT_HOPS 16384 /* a power of two */
#define MF_STATE_AT 0x02000000
#define MF_ADDRESSES_MAX 64
#define MF_UNSUMMED_MAX 64
#define MF_NOW (~0ull)

/* What user space asks of a call. */
enum mf_call { MF_CALL_PACKET, MF_CALL_TICK, MF_CALL_BENCH, MF_CALL_ORDER };

/* What the shells count, beside what the program counts: one line each, so that C, Rust, metrics and docs agree. */
#define MF_SHELL_COUNTS(X)                                                                         \
    X(xdp_taken, "datagrams that XDP gave to the program")                                         \
    X(xdp_answered, "answers that XDP sent")                                                       \
    X(tc_taken, "datagrams that TC gave to the program: those that may owe several answers")       \
    X(tc_answered, "answers that TC sent")                                                         \
    X(forwarded, "datagrams passed on to somebody else than their sender")                         \
    X(handed_over, "answers left to user space: cookies, and those whose next hop is not known")   \
    X(hand_over_failed, "answers lost: no room to leave them to user space")                       \
    X(send_failed, "answers lost: the frame could not be made")                                    \
    X(asserted, "answers lost: the program owed what it had said it would not; a bug")             \
    X(passed_source, "datagrams from an address or port that nobody can have there, passed up")    \
    X(passed_fragment, "IP fragments to our port or of unknown port, passed up")                   \
    X(passed_options, "datagrams with IP options or extension headers, passed up")                 \
    X(passed_checksum, "datagrams whose checksum the shell cannot confirm, passed up")             \
    X(passed_length, "datagrams whose lengths disagree, passed up")                                \
    X(passed_tags, "datagrams in frames with more VLAN tags than two, passed up")                  \
    X(passed_merged, "datagrams that GRO merged into one before TC saw them, passed up")           \
    X(passed_contended, "datagrams that found the program locked for too long, passed up")         \
    X(called, "datagrams that user space brought")

struct mf_shell_counts {
#define X(name, text) uint64_t name;
    MF_SHELL_COUNTS(X)
#undef X
};

#define MF_TAGS_MAX 2 /* VLAN tags of a frame that is taken: 802.1Q, or 802.1ad around it */

/* The next hop to a peer: how frames go to it and come from it. */
struct mf_next_hop {
    struct mf_address peer;
    uint32_t interface; /* 0: none */
    uint8_t own[16];    /* the address of ours that the peer talks to */
    uint8_t macs[12];   /* as a frame to the peer begins: its address, then ours */
    uint16_t tags;      /* how many */
    uint16_t type;      /* behind them; network byte order: IPv4 or IPv6 */
    uint32_t tag[MF_TAGS_MAX]; /* as in the frame, outermost first */
} __attribute__((aligned(8)));

_Static_assert(sizeof(struct mf_next_hop) == 64, "a cache line");

/* What one packet needs while it is taken: of a CPU, or of user space. */
struct mf_scratch {
    struct mf_datagram in;
    struct mf_next_hop back; /* to its sender */
    uint32_t verdict;  /* on the last one that a shell took: tests read it */
    uint32_t is_whole; /* 1: its checksum was right or absent; 0: it was left to hardware */
    uint8_t data[1536]; /* MF_PACKET_MAX and a margin */
    struct mf_shell_counts counts;
    struct mf_next_hop other; /* to somebody else, while a shell sends to him */
    struct mf_out out;
};

struct mf_control {
    uint32_t lock;
    uint32_t apart[15]; /* a cache line of its own: what follows is read for each frame, and never changes */

    uint16_t port;      /* network byte order */
    uint16_t addresses; /* how many */
    uint32_t generic;   /* 1: XDP runs in generic mode somewhere, behind what the kernel has made of a frame */
    struct mf_address address[MF_ADDRESSES_MAX]; /* those of this machine that the switch serves; ports are not looked at */
    uint32_t unsummed[MF_UNSUMMED_MAX]; /* interfaces where XDP takes the pseudo-header's sum for a checksum; 0 ends them */
    uint64_t next_hop_salt; /* random, and nobody outside knows it */

    /* A call from user space; its datagram and its answers lie in the first scratch area. */
    uint32_t call;      /* enum mf_call */
    uint32_t verdict;   /* of a packet; elements looked at by a tick; packets refused by a benchmark; 1: an order is done */
    uint64_t now_ns;    /* MF_NOW: the clock's */
    uint64_t bench_at;  /* `bench_count` struct mf_datagram */
    uint32_t bench_count;
    uint32_t reserved;
    uint64_t bench_ns;
    uint64_t order[MF_ORDER_BYTES / 8];
};

_Static_assert(sizeof(struct mf_control) % 8 == 0, "no hole at the end");

#define MF_CONTROL ((struct mf_control MF_FAR *)MF_CONTROL_AT)

static inline __attribute__((always_inline)) struct mf_scratch MF_FAR *mf_scratch_of(uint32_t number)
{
    return (struct mf_scratch MF_FAR *)(uintptr_t)(MF_SCRATCH_AT + number * MF_SCRATCH_BYTES);
}

_Static_assert(sizeof(struct mf_scratch) <= MF_SCRATCH_BYTES, "a scratch area has room for everything");
_Static_assert(MF_SCRATCH_AT + MF_SCRATCHES * MF_SCRATCH_BYTES <= MF_NEXT_HOPS_AT, "scratch areas end before the next hops");
_Static_assert(MF_NEXT_HOPS_AT + MF_NEXT_HOPS * sizeof(struct mf_next_hop) <= MF_STATE_AT, "next hops end before the state");
_Static_assert(MF_CONTROL_AT + sizeof(struct mf_control) <= MF_KEPT_AT, "control ends before what is kept");
_Static_assert(MF_KEPT_AT < MF_SCRATCH_AT, "which ends before the scratch areas");

#endif
