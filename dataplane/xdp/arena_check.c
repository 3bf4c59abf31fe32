// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
/* For a test that compares arena.h with `crates/dataplane/src/kernel/layout.rs`. */
#include <stddef.h>

#include "arena.h"

#define MF_FIELDS 46

/* Writes sizes, offsets and bounds in the test's order, and returns their number. */
uint32_t mf_arena_layout(uint64_t layout[MF_FIELDS])
{
    const uint64_t here[] = {
        MF_CONTROL_AT,
        MF_SCRATCH_AT,
        MF_SCRATCH_BYTES,
        MF_SCRATCHES,
        MF_NEXT_HOPS_AT,
        MF_NEXT_HOPS,
        MF_STATE_AT,
        MF_ADDRESSES_MAX,
        MF_UNSUMMED_MAX,
        MF_INTERFACES_MAX,
        MF_CALL_PACKET,
        MF_CALL_TICK,
        MF_CALL_ORDER,
        sizeof(struct mf_control),
        offsetof(struct mf_control, lock),
        offsetof(struct mf_control, port),
        offsetof(struct mf_control, addresses),
        offsetof(struct mf_control, generic),
        offsetof(struct mf_control, address),
        offsetof(struct mf_control, unsummed),
        offsetof(struct mf_control, interface),
        offsetof(struct mf_control, next_hop_salt),
        offsetof(struct mf_control, call),
        offsetof(struct mf_control, verdict),
        offsetof(struct mf_control, now_ns),
        offsetof(struct mf_control, bench_at),
        offsetof(struct mf_control, bench_count),
        offsetof(struct mf_control, bench_ns),
        offsetof(struct mf_control, order),
        sizeof(struct mf_next_hop),
        offsetof(struct mf_next_hop, interface),
        offsetof(struct mf_next_hop, own),
        offsetof(struct mf_next_hop, macs),
        offsetof(struct mf_next_hop, tags),
        offsetof(struct mf_next_hop, type),
        offsetof(struct mf_next_hop, tag),
        sizeof(struct mf_scratch),
        offsetof(struct mf_scratch, back),
        offsetof(struct mf_scratch, verdict),
        offsetof(struct mf_scratch, is_whole),
        offsetof(struct mf_scratch, copied),
        offsetof(struct mf_scratch, data),
        offsetof(struct mf_scratch, counts),
        offsetof(struct mf_scratch, other),
        offsetof(struct mf_scratch, out),
    };
    _Static_assert(sizeof(here) / sizeof(here[0]) <= MF_FIELDS, "room for all");
    __builtin_memcpy(layout, here, sizeof(here));
    return sizeof(here) / sizeof(here[0]);
}

/* The texts of MF_SHELL_COUNTS: even numbers are names, odd ones meanings; null after the last. */
const char *mf_shell_count(uint32_t number)
{
    static const char *const texts[] = {
#define X(name, text) #name, text,
        MF_SHELL_COUNTS(X)
#undef X
    };
    return number < sizeof(texts) / sizeof(texts[0]) ? texts[number] : 0;
}
