/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* A survey visits a table in steps, so that no packet waits long for it. */
#ifndef MIDFLIGHT_SHARED_SURVEY_H
#define MIDFLIGHT_SHARED_SURVEY_H

#include "midflight/switch.h"

/* Elements of a table of `count` to visit from `*next` on; advances `*next`, or resets it to 0 after the last one. */
static uint32_t visit(uint32_t *next, uint32_t count)
{
    uint32_t left = *next < count ? count - *next : 0;
    uint32_t visited = left < MF_SURVEY_STEP ? left : MF_SURVEY_STEP;
    *next = left > visited ? *next + visited : 0;
    return visited;
}

#endif
