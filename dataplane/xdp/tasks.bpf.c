// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/*
 * The tasks program in the kernel: the core of src/, and the shells that bring it packets.
 *
 *   xdp.h      mf_xdp: datagrams that owe at most one answer, to their sender
 *   tc.h       mf_tc: those that XDP passes on because they may owe several
 *   call.h     mf_call: what user space brings: a datagram that came by a socket, a tick, a benchmark
 *
 *   parse.h    from a frame to a datagram        arena.h   memory that all share
 *   odd.h      frames that may be ours, and      maps.h    maps
 *              are left alone                    core.h    the core
 *   compose.h  from an answer to a frame         lock.h    its lock
 *   ways.h     ways to executors                 words.h   copying and summing
 *   handover.h answers left to user space
 */
#include "call.h"
#include "tc.h"
#include "xdp.h"

char _license[] SEC("license") = "Dual MIT/GPL";
