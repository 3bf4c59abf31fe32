/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The program that the shells serve. A `*.bpf.c` includes the program's source, then defines these hooks:
 *
 *     PROGRAM_STATE    the type of its state
 *     PROGRAM_ORDER    the type of an operator's order
 *     PROGRAM(NAME)    how its functions of switch.h are called: mf_tasks_##NAME
 *     PROGRAM_NOW()    its clock: bpf_ktime_get_ns(), or bpf_ktime_get_boot_ns() where its leases are promises to other
 *                      machines, whose time goes on while this machine is suspended
 *
 * and perhaps
 *
 *     PROGRAM_HEADER_BYTES                    the first bytes of a datagram, a multiple of 8, by which alone the program decides ...
 *     PROGRAM_DECIDES_BY_HEADER(OPERATION)    ... about one of this operation; it reads and changes nothing behind
 *                                            them, and owes one answer at most
 *
 *     PROGRAM_NEEDS_TIME(DATA)                whether it needs the time for the datagram that begins at DATA, perhaps cut off
 *
 * Of such a datagram the shell copies no more, and does not check its sum, if it forwards it in the frame in which it came: there
 * the checksum is changed by the difference, so the receiver notices damage.
 */
#ifndef MIDFLIGHT_XDP_CORE_H
#define MIDFLIGHT_XDP_CORE_H

#include "maps.h"

#include "lock.h"
#include "words.h"

#ifndef PROGRAM_HEADER_BYTES
#define PROGRAM_HEADER_BYTES 0
#define PROGRAM_DECIDES_BY_HEADER(operation) 0
#endif

#ifndef PROGRAM_NEEDS_TIME
#define PROGRAM_NEEDS_TIME(data) 1
#endif

_Static_assert(PROGRAM_HEADER_BYTES % 8 == 0, "copied as long words");
_Static_assert(sizeof(PROGRAM_ORDER) <= MF_ORDER_BYTES, "the control block has room for an order");

/* Hides from the compiler that the address of the state is a constant: it would compute the address of every field in advance,
 * and keep them on the stack, which has 512 bytes. */
MF_INLINE PROGRAM_STATE MF_FAR *program_state(void)
{
    uint64_t at = MF_STATE_AT;
    __asm__("" : "+r"(at));
    return (PROGRAM_STATE MF_FAR *)at;
}

/* Call it with the lock held: otherwise another CPU could bring the program a later time first. */
MF_INLINE uint64_t now_ns(void)
{
    uint64_t set_by_test = MF_CONTROL->now_ns;
    return MF_LIKELY(set_by_test == MF_NOW) ? PROGRAM_NOW() : set_by_test;
}

/* The time for this datagram. Who needs none gets the end of time, when every lease is over. */
MF_INLINE uint64_t time_for(const uint8_t MF_FAR *data)
{
    (void)data;
    return PROGRAM_NEEDS_TIME(data) ? now_ns() : ~0ull;
}

MF_INLINE mf_verdict take(uint64_t now_ns, const struct mf_datagram MF_FAR *in, struct mf_out MF_FAR *out)
{
    return PROGRAM(packet)(program_state(), now_ns, in, out);
}

/* Whether the program may owe more than one answer of at most `room` bytes to the sender. */
MF_INLINE int owes_more(const struct mf_datagram MF_FAR *in, uint32_t room)
{
    return PROGRAM(owes_more)(program_state(), in, room);
}

static __attribute__((noinline)) uint32_t take_tick(uint64_t now_ns, struct mf_out MF_FAR *out)
{
    return PROGRAM(tick)(program_state(), now_ns, out);
}

static __attribute__((noinline)) uint32_t take_order(uint64_t MF_FAR *order)
{
    return PROGRAM(order)(program_state(), (PROGRAM_ORDER MF_FAR *)order);
}

#endif
