/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Cookies: a client that repeats its cookie proves that it receives what is sent to its address. So nobody can make a replica send
 * values to others. The switch stores nothing for that: a cookie is a keyed hash of address and time.
 */
#ifndef MIDFLIGHT_READS_COOKIE_H
#define MIDFLIGHT_READS_COOKIE_H

#include "shared/siphash.h"
#include "state.h"

/* The cookie of an interval of time, `window`; never 0, which means "none". */
MF_INLINE uint64_t cookie_of(const struct mf_reads *s, uint64_t window, const struct mf_datagram *in)
{
    const struct address_words *from = (const struct address_words *)&in->from;
    uint64_t cookie = siphash(s->cookie_key, 0, mf_little64(from->high), mf_little64(from->low),
                              window << 16 | mf_little16(from->port));
    return cookie ? cookie : 1;
}

/* Where a request carries its cookie: the first half of the field that later holds the client's address. */
struct MF_WIRE __attribute__((may_alias)) cookie_place {
    uint64_t cookie;
};

/* Whether a request carries the cookie of its address, of this interval or the one before. */
MF_INLINE int has_cookie(const struct mf_reads *s, uint64_t now_ns, const struct mf_datagram *in)
{
    const struct mf_request *request = (const struct mf_request *)in->data;
    uint64_t said = mf_net64(((const struct cookie_place *)&request->client)->cookie), window = now_ns / s->cookie_ns;
    return said == cookie_of(s, window, in) || (window > 0 && said == cookie_of(s, window - 1, in));
}

#endif
