/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The arena: all memory shared by the XDP and TC programs and user space, which maps it and initialises the program's state. Addresses here
 * are offsets from the arena's start. `crates/dataplane/src/kernel/layout.rs` has the same layout; a test compares the two.
 *
 *     0x00001000   struct mf_control
 *     0x00008000   facts for the next process that takes over this state; BPF programs never read it (`kept.rs`)
 *     0x00010000   scratch areas of 64 KiB: the first for calls from user space, then one for each CPU
 *     0x01100000   the next hop cache
 *     0x02000000   the program's state, followed by the packets of a benchmark or test
 *
 * A BPF program cannot allocate pages: a store to a page that user space has not touched is lost. So user space touches them all.
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
#define MF_NEXT_HOPS_BITS 14
#define MF_NEXT_HOPS (1 << MF_NEXT_HOPS_BITS)
#define MF_STATE_AT 0x02000000
#define MF_ADDRESSES_MAX 64
#define MF_UNSUMMED_MAX 64
#define MF_INTERFACES_MAX 64
#define MF_NOW (~0ull) /* as a time: read the clock */

/* What user space can request from mf_call. */
enum mf_call { MF_CALL_PACKET, MF_CALL_TICK, MF_CALL_ORDER };

/* Counts of the XDP and TC programs, in addition to the core's: one line each, so that C, Rust, metrics and docs agree. */
#define MF_SHELL_COUNTS(X)                                                                         \
    X(xdp_taken, "datagrams that XDP gave to the program")                                         \
    X(xdp_answered, "answers that XDP sent")                                                       \
    X(tc_taken, "datagrams that TC gave to the program: those that may owe several answers")       \
    X(tc_answered, "answers that TC sent")                                                         \
    X(forwarded, "datagrams sent on to another address than their sender's")                       \
    X(handed_over, "answers left to user space: cookies, and those whose next hop is not known")   \
    X(hand_over_failed, "answers lost: no room to leave them to user space")                       \
    X(dropped_checksum, "datagrams to forward that were found damaged when all of them was needed")   \
    X(send_failed, "answers lost: the frame could not be made")                                    \
    X(asserted, "answers lost: the program owed more than it had announced; a bug")                \
    X(passed_source, "datagrams from an address or port that no sender can have, passed up")       \
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

#define MF_TAGS_MAX 2 /* VLAN tags of an accepted frame: 802.1Q, or 802.1ad around it */

/* The next hop to a peer, learned from a frame that came from it. */
struct mf_next_hop {
    struct mf_address peer;
    uint32_t interface; /* its index; 0: empty entry */
    uint8_t own[16];    /* our address that the peer talks to, the only source it accepts answers from */
    uint8_t macs[12];   /* start of a frame to the peer: its MAC address, then ours */
    uint16_t tags;
    uint16_t type;      /* EtherType after the tags, network byte order: IPv4 or IPv6 */
    uint32_t tag[MF_TAGS_MAX]; /* as in the frame, outermost first */
} __attribute__((aligned(8)));

_Static_assert(sizeof(struct mf_next_hop) == 64, "a cache line");

/* Scratch area: working memory for one packet at a time. Each CPU has one, and user space has one for its calls. */
struct mf_scratch {
    struct mf_datagram in;
    struct mf_next_hop back; /* to the packet's sender */
    uint32_t verdict;        /* outcome of the last packet, for tests */
    uint16_t is_whole;       /* 0: the sender left the checksum to hardware */
    uint16_t whole_check;    /* the complete checksum for that case */
    uint32_t copied;         /* bytes of the datagram in `data`: all, or PROGRAM_HEADER_BYTES */
    uint32_t reserved;
    uint8_t data[1536];      /* the datagram: MF_PACKET_MAX, plus a margin for the verifier's masks */
    struct mf_shell_counts counts;
    struct mf_next_hop other; /* to another receiver, during a send */
    struct mf_out out;
};

struct mf_control {
    uint32_t lock;
    uint32_t padding[15]; /* gives the lock its own cache line: the following fields are read for each frame and rarely change */

    uint16_t port;      /* the switch's, network byte order */
    uint16_t addresses;
    uint32_t generic;   /* 1: XDP runs in generic mode on an interface, where the stack may have changed a frame before */
    struct mf_address address[MF_ADDRESSES_MAX]; /* addresses of this machine that the switch serves; ports are not used */
    uint32_t unsummed[MF_UNSUMMED_MAX]; /* interfaces on which XDP accepts the pseudo-header's sum as a checksum; ends with 0 */
    uint32_t interface[MF_INTERFACES_MAX]; /* interfaces with these programs; ends with 0 */
    uint64_t next_hop_salt; /* random and secret, so that an attacker cannot choose addresses that collide in the cache */

    /* A call from user space; its datagram and answers are in the first scratch area. */
    uint32_t call;      /* enum mf_call */
    uint32_t verdict;   /* result: a packet's outcome; the elements that a tick visited; the packets that a benchmark refused; 1 for a
                         * finished order */
    uint64_t now_ns;    /* time for the program; MF_NOW: read the clock */
    uint64_t bench_at;  /* offset of `bench_count` struct mf_datagram */
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
_Static_assert(MF_CONTROL_AT + sizeof(struct mf_control) <= MF_KEPT_AT, "the control block ends before the kept page");
_Static_assert(MF_KEPT_AT < MF_SCRATCH_AT, "the kept page begins before the scratch areas");

#endif
