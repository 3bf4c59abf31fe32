// SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only
#include "echo.h"

uint64_t mf_echo_size(const uint64_t *first)
{
    return *first ? sizeof(struct mf_echo) : 0;
}

void mf_echo_init(struct mf_echo *echo, const uint64_t *first, uint32_t epoch, const uint64_t key[2])
{
    (void)epoch, (void)key;
    echo->stats.number = *first;
}

void mf_echo_stats(const struct mf_echo *echo, struct mf_echo_stats *stats)
{
    *stats = echo->stats;
}

int mf_echo_check(const struct mf_echo *echo)
{
    return echo->stats.packets[1] == echo->stats.verdicts[MF_V_FORWARDED] ? 0 : __LINE__;
}
