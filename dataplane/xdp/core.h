/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The program that the shells serve, by its hooks. A `*.bpf.c` includes the program's source, then names them:
 *
 *     PROGRAM_STATE    its state, a type
 *     PROGRAM_ORDER    an operator's order, a type
 *     PROGRAM(NAME)    its functions of switch.h: mf_tasks_##NAME
 *     PROGRAM_NOW()    the clock that its times are of: bpf_ktime_get_ns(), or bpf_ktime_get_boot_ns() where its leases bind
 *                      others, who do not stand still while this machine is suspended
 */
#ifndef MIDFLIGHT_XDP_CORE_H
#define MIDFLIGHT_XDP_CORE_H

#include "maps.h"

#include "lock.h"
#include "words.h"

_Static_assert(sizeof(PROGRAM_ORDER) <= MF_ORDER_BYTES, "the control block has room for an order");

/* The compiler must not see that the address of the state is a constant: it would keep every field's in a register. */
MF_INLINE PROGRAM_STATE MF_FAR *program_state(void)
{
    uint64_t at = MF_STATE_AT;
    __asm__("" : "+r"(at));
    return (PROGRAM_STATE MF_FAR *)at;
}

/* To be asked under the lock: a program's time never goes back. */
MF_INLINE uint64_t now_ns(void)
{
    uint64_t made_up = MF_CONTROL->now_ns;
    return MF_LIKELY(made_up == MF_NOW) ? PROGRAM_NOW() : made_up;
}

MF_INLINE mf_verdict take(uint64_t now_ns, const struct mf_datagram MF_FAR *in, struct mf_out MF_FAR *out)
{
    return PROGRAM(packet)(program_state(), now_ns, in, out);
}

/* Whether the program may owe more than one answer of `room` bytes to the sender. */
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
