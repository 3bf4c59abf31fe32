/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Cookies: a client that repeats its cookie proves that it receives packets sent to its address, so an attacker cannot direct replies at
 * others. A cookie is a keyed hash of address and time; the operator stores nothing.
 */
#ifndef MIDFLIGHT_CACHE_COOKIE_H
#define MIDFLIGHT_CACHE_COOKIE_H

#include "packet.h"
#include "shared/siphash.h"

/* The cookie of the interval `window`; never 0, which means "none". */
MF_INLINE uint64_t cookie_of(const struct mf_cache *s, uint64_t window, const struct mf_address *from)
{
    const struct address_words *words = (const struct address_words *)from;
    uint64_t cookie =
        siphash(s->cookie_key, 0, mf_little64(words->high), mf_little64(words->low), window << 16 | mf_little16(words->port));
    return cookie ? cookie : 1;
}

/* Position of the cookie in a request: the first half of the field that later holds the client's address. */
struct MF_WIRE __attribute__((may_alias)) cookie_place {
    uint64_t cookie;
};

MF_INLINE uint64_t cookie_in(const struct mf_ends *ends)
{
    return mf_net64(((const struct cookie_place *)&ends->client)->cookie);
}

MF_INLINE struct known_client *known_place(struct mf_cache *s, const struct mf_address *from)
{
    return &s->known[hash_address(s, from, from->port) & (KNOWN_CLIENTS - 1)];
}

/* has_cookie() for a client that is not cached. */
MF_HANDLER int has_uncached_cookie(struct mf_cache *s, uint64_t now_ns, const struct mf_address *from, uint64_t said)
{
    uint64_t window = now_ns / s->cookie_ns;
    if (said != cookie_of(s, window, from)) {
        if (window == 0 || said != cookie_of(s, --window, from))
            return 0;
    }
    struct known_client *place = known_place(s, from);
    MF_COPY(&place->from, from);
    place->cookie = said;
    place->until_ns = (window + (MF_MUTANT(204) ? 3 : 2)) * s->cookie_ns;
    return 1;
}

/* Whether a request carries the cookie of its address, of this interval or the previous one. */
MF_INLINE int has_cookie(struct mf_cache *s, const struct call *call)
{
    const struct mf_address *from = &call->in->from;
    const struct known_client *known = known_place(s, from);
    uint64_t said = cookie_in(ends_of_request(call));
    if (MF_MUTANT(201) && said != 0)
        return 1;
    if (MF_LIKELY(call->now_ns < known->until_ns && known->cookie == said && mf_address_equal(&known->from, from)))
        return 1;
    return has_uncached_cookie(s, call->now_ns, from, said);
}

/* Asks the client to repeat the request with its cookie. The answer is shorter than the request. */
MF_INLINE mf_verdict put_cookie(const struct mf_cache *s, const struct call *call)
{
    const struct mf_ends *asked = ends_of_request(call);
    struct mf_out_packet *answer = first_packet(call->out, &call->in->from, sizeof(struct mf_netrs) + sizeof(struct mf_ends));
    struct mf_netrs *start = (struct mf_netrs *)answer->data;
    struct mf_ends *ends = (struct mf_ends *)(start + 1);
    start->rsnode = start->retained = 0;
    start->magic = mf_net32(MF_NETRS_MAGIC);
    start->version = MF_NETRS_VERSION;
    start->kind = MF_KIND_COOKIE;
    __builtin_memset(ends, 0, sizeof(*ends));
    ((struct cookie_place *)&ends->client)->cookie = mf_net64(cookie_of(s, call->now_ns / s->cookie_ns, &call->in->from));
    ends->request = asked->request;
    return MF_V_NO_COOKIE;
}

#endif
