/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Sources: the addresses that hold records here, and their share of each table (T14). IPv6 addresses with the same first 64 bits are one
 * source, because one host can own all of them. Addresses are not forged: every record requires a cookie.
 */
#ifndef MIDFLIGHT_SOURCES_H
#define MIDFLIGHT_SOURCES_H

#include "pools.h"

/* A source may take more of a table while it holds less than SHARE times the free elements: the dynamic threshold of switches' shared
 * buffers (Choudhury and Hahne, 1998). Alone it gets 8/9 of a table, and a second source always finds room. */
#define SHARE 8ull

/* How much each record brings its source nearer to that bound: one more held, one less free. */
#define SHARE_OF_ONE ((int64_t)SHARE + 1)

/* Distance from the bound of a source that holds `held` elements of a table: above 0 it may take more. */
MF_INLINE int64_t share_left(uint32_t held, uint32_t free)
{
    return (int64_t)(SHARE * free) - held;
}

MF_INLINE int is_within_share(uint32_t held, uint32_t free)
{
    return share_left(held, free) > 0;
}

static uint32_t find_source(struct mf_tasks *s, const struct mf_address *address)
{
    uint64_t key = source_key(address);
    uint32_t i = *source_bucket_at(s, source_bucket(s, key));
    for (uint32_t step = MF_ZERO; MF_LOOP(i != NONE && step < CHAIN_MAX); step++) {
        if (source_at(s, i)->key == key)
            return i;
        i = source_at(s, i)->link.next;
    }
    return NONE;
}

/* The same, added if new. There is always room: sources are as many as clients and slots, and each of these has one. */
static uint32_t find_or_add_source(struct mf_tasks *s, const struct mf_address *address)
{
    uint32_t i = find_source(s, address);
    if (i != NONE)
        return i;
    i = take_source(s);
    struct source *source = source_at(s, i);
    source->key = source_key(address);
    source->clients = source->slots = source->tasks = source->blocks = 0;
    source_index_insert(s, source_bucket(s, source->key), i);
    return i;
}

MF_INLINE void release_source(struct mf_tasks *s, uint32_t i)
{
    const struct source *source = source_at(s, i);
    if (source->clients != 0 || source->slots != 0)
        return;
    source_index_remove(s, i);
    give_source(s, i);
}

#endif
