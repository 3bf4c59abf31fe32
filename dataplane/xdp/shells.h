/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The shells that bring a program its packets in the kernel, the same for all programs. core.h says what a `*.bpf.c` defines
 * before it includes this.
 *
 *   xdp.h      mf_xdp: datagrams that owe at most one answer, to their sender, or that are forwarded
 *   tc.h       mf_tc: datagrams that XDP leaves to it because they may owe several answers
 *   call.h     mf_call: for user space: a datagram that came by a socket, a tick, an order
 *
 *   parse.h       from a frame to a datagram       arena.h   memory shared with user space
 *   odd.h         frames that may be for us,       maps.h    maps
 *                 counted and left alone           core.h    the program's hooks
 *   compose.h     from a datagram to a frame       lock.h    the spin lock
 *   plain.h       both for the usual frame
 *   next_hops.h   the next hop cache,              words.h   copying and summing
 *   routes.h      and who is not in it
 *   handover.h    answers left to user space
 */
#ifndef MIDFLIGHT_SHELLS_H
#define MIDFLIGHT_SHELLS_H

#include "call.h"
#include "tc.h"
#include "xdp.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#endif
