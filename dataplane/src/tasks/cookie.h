/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Cookies: a sender that repeats its cookie proves that it receives packets sent to its address. A cookie is a keyed hash of identity,
 * address and time; the switch stores nothing. A sender without one costs a hash, and an answer no longer than its packet (T13).
 */
#ifndef MIDFLIGHT_COOKIE_H
#define MIDFLIGHT_COOKIE_H

#include "reply.h"
#include "shared/siphash.h"

/* The start of SUBMIT, CANCEL, PROBE and REGISTER. */
struct MF_WIRE identified {
    struct mf_header header;
    uint64_t identity;
    uint64_t cookie;
};

_Static_assert(offsetof(struct mf_submit, cookie) == offsetof(struct identified, cookie), "SUBMIT begins so");
_Static_assert(offsetof(struct mf_cancel, cookie) == offsetof(struct identified, cookie), "CANCEL begins so");
_Static_assert(offsetof(struct mf_probe, cookie) == offsetof(struct identified, cookie), "PROBE begins so");
_Static_assert(offsetof(struct mf_register, cookie) == offsetof(struct identified, cookie), "REGISTER begins so");
_Static_assert(sizeof(struct mf_cookie) <= sizeof(struct identified), "the answer is not longer than the question");

/* The cookie of the interval `window`; never 0, which means "none". */
MF_INLINE uint64_t cookie_of(const struct mf_tasks *s, uint64_t window, const struct mf_datagram *in)
{
    const struct identified *packet = (const struct identified *)in->data;
    const struct address_words *from = (const struct address_words *)&in->from;
    uint64_t cookie = siphash(s->cookie_key, mf_net64(packet->identity), mf_little64(from->high), mf_little64(from->low),
                              window << 16 | mf_little16(from->port));
    return cookie ? cookie : 1;
}

/* Whether a packet carries the cookie of its identity and address, of this interval or the previous one. */
MF_RARE int has_cookie(const struct mf_tasks *s MF_IN_ARENA, uint64_t now_ns, const struct mf_datagram *in MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    uint64_t said = mf_net64(((const struct identified *)in->data)->cookie), window = now_ns / s->cookie_ns;
    if (said == 0)
        return 0;
    return said == cookie_of(s, window, in) || (window > 0 && said == cookie_of(s, window - 1, in)) ||
           (MF_MUTANT(15) && window > 7 && said == cookie_of(s, window - 3, in));
}

/* Asks the sender to repeat the packet with its cookie. The packet changes nothing. */
MF_RARE mf_verdict put_cookie(const struct mf_tasks *s MF_IN_ARENA, uint64_t now_ns,
                                   const struct mf_datagram *in MF_IN_ARENA, struct mf_out *out MF_IN_ARENA)
{
    MF_FROM_ARENA(s);
    MF_FROM_ARENA(in);
    MF_FROM_ARENA(out);
    const struct identified *packet = (const struct identified *)in->data;
    struct mf_out_packet *answer = first_packet(out, &in->from, sizeof(struct mf_cookie));
    struct mf_cookie *given = (struct mf_cookie *)answer->data;
    put_header(s, answer->data, MF_OP_COOKIE, 0, packet->header.sequence);
    given->identity = packet->identity;
    given->cookie = mf_net64(cookie_of(s, now_ns / s->cookie_ns, in));
    return MF_V_NO_COOKIE;
}

#endif
