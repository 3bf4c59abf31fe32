/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Cookies: a client that repeats its cookie proves that it receives packets sent to its address, so an attacker cannot direct replies at
 * others. A cookie is a keyed hash of address and time; the switch stores nothing.
 */
#ifndef MIDFLIGHT_STORE_COOKIE_H
#define MIDFLIGHT_STORE_COOKIE_H

#include "shared/siphash.h"
#include "state.h"

/* The cookie of the interval `window`; never 0, which means "none". */
MF_INLINE uint64_t cookie_of(const struct mf_store *s, uint64_t window, const struct mf_datagram *in)
{
    const struct address_words *from = (const struct address_words *)&in->from;
    uint64_t cookie = siphash(s->cookie_key, 0, mf_little64(from->high), mf_little64(from->low),
                              window << 16 | mf_little16(from->port));
    return cookie ? cookie : 1;
}

/* Position of the cookie in a request: the first half of the field that later holds the client's address. */
struct MF_WIRE __attribute__((may_alias)) cookie_place {
    uint64_t cookie;
};

/* Cache position of a client's address. Without the key, an attacker cannot choose addresses that collide. */
MF_INLINE struct known_client *known_place(struct mf_store *s, const struct mf_address *from)
{
    const struct address_words *words = (const struct address_words *)from;
    uint64_t odd = s->cookie_key[1] | 1;
    uint64_t hash = mf_mix((words->high ^ s->cookie_key[0]) * odd + words->low + words->port * (odd + 2));
    return &s->known[hash & (KNOWN_CLIENTS - 1)];
}

/* Caches a client whose cookie is of this interval. (A product that wraps gives an earlier time, which is safe.) */
MF_INLINE void remember_client(const struct mf_store *s, struct known_client *place, const struct mf_address *from,
                               uint64_t cookie, uint64_t window)
{
    MF_COPY(&place->from, from);
    place->cookie = cookie;
    place->until_ns = (window + 2) * s->cookie_ns;
}

MF_INLINE uint64_t cookie_in(const struct mf_datagram *in)
{
    const struct mf_request *request = (const struct mf_request *)in->data;
    return mf_net64(((const struct cookie_place *)&request->client)->cookie);
}

/* has_cookie() for a client that is not cached. */
MF_HANDLER int has_uncached_cookie(struct mf_store *s, uint64_t now_ns, const struct mf_datagram *in)
{
    uint64_t said = cookie_in(in), window = now_ns / s->cookie_ns;
    if (said != cookie_of(s, window, in)) {
        if (window == 0 || said != cookie_of(s, --window, in))
            return 0;
    }
    remember_client(s, known_place(s, &in->from), &in->from, said, window);
    return 1;
}

/* Whether a request carries the cookie of its address, of this interval or the previous one. */
MF_INLINE int has_cookie(struct mf_store *s, uint64_t now_ns, const struct mf_datagram *in)
{
    const struct known_client *known = known_place(s, &in->from);
    if (MF_LIKELY(now_ns < known->until_ns && known->cookie == cookie_in(in) && mf_address_equal(&known->from, &in->from)))
        return 1;
    return has_uncached_cookie(s, now_ns, in);
}

#endif
