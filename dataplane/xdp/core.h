/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The core called by the XDP and TC programs. A `*.bpf.c` includes the core's source, then defines these hooks:
 *
 *     PROGRAM_STATE    the type of its state
 *     PROGRAM_ORDER    the type of an operator's order
 *     PROGRAM(NAME)    the name of its functions of switch.h: mf_tasks_##NAME
 *     PROGRAM_NOW()    its clock: bpf_ktime_get_ns(), or bpf_ktime_get_boot_ns() if its leases are promises to other machines,
 *                      whose time continues while this machine is suspended
 *
 * and optionally
 *
 *     PROGRAM_HEADER_BYTES                    leading bytes of a datagram, a multiple of 8, that suffice for the program's decision
 *     PROGRAM_DECIDES_BY_HEADER(OPERATION)    whether this holds for an operation: the program reads and changes only these bytes,
 *                                             and owes at most one answer
 *
 *     PROGRAM_NEEDS_TIME(DATA)                whether it needs the time for the datagram that begins at DATA and may be truncated
 *
 * Of a datagram decided by its header, only the header is copied, and the checksum is not checked if the datagram is forwarded in its own
 * frame: there the checksum changes by the difference, so the receiver detects damage.
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

/* Hides from the compiler that the state's address is constant: otherwise it would precompute the address of every field and spill them to
 * the stack of 512 bytes. */
MF_INLINE PROGRAM_STATE MF_FAR *program_state(void)
{
    uint64_t at = MF_STATE_AT;
    __asm__("" : "+r"(at));
    return (PROGRAM_STATE MF_FAR *)at;
}

/* Call with the lock held: otherwise another CPU could pass a later time to the program first. */
MF_INLINE uint64_t now_ns(void)
{
    uint64_t set_by_test = MF_CONTROL->now_ns;
    return MF_LIKELY(set_by_test == MF_NOW) ? PROGRAM_NOW() : set_by_test;
}

/* The time for this datagram. A datagram that needs none gets the end of time, when every lease is over. */
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
