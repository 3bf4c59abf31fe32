/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * The XDP and TC programs in the kernel, the same for all programs of the soft engine. core.h lists the definitions that a `*.bpf.c` needs
 * before it includes this.
 *
 *   xdp.h      mf_xdp: datagrams that are forwarded, or owe at most one answer, to their sender
 *   tc.h       mf_tc: datagrams that XDP leaves because they may owe several answers
 *   call.h     mf_call: for user space: a datagram from a socket, a tick, an order
 *
 *   parse.h       from a frame to a datagram       arena.h   memory shared with user space
 *   odd.h         counts frames that may be        maps.h    maps
 *                 for us but are not taken         core.h    the program's hooks
 *   compose.h     from a datagram to a frame       lock.h    the spin lock
 *   plain.h       both for the usual frame
 *   next_hops.h   the next hop cache               words.h   copying and summing
 *   routes.h      peers without an entry in it
 *   handover.h    answers sent by user space
 */
#ifndef MIDFLIGHT_SHELLS_H
#define MIDFLIGHT_SHELLS_H

#include "call.h"
#include "tc.h"
#include "xdp.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#endif
