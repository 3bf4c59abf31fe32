/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Reads and writes the parts of a datagram. */
#ifndef MIDFLIGHT_CACHE_PACKET_H
#define MIDFLIGHT_CACHE_PACKET_H

#include "state.h"

MF_INLINE struct mf_netrs *start_of(const struct call *call)
{
    return (struct mf_netrs *)call->in->data;
}

MF_INLINE struct mf_ends *ends_of_request(const struct call *call)
{
    return (struct mf_ends *)(call->in->data + sizeof(struct mf_netrs_request));
}

MF_INLINE uint32_t status_length(const struct call *call)
{
    return mf_net16(((const struct mf_netrs_response *)call->in->data)->status_length);
}

/* The ends of a response whose status has this length. */
MF_INLINE struct mf_ends *ends_of_response(const struct call *call, uint32_t status)
{
    return (struct mf_ends *)(call->in->data + sizeof(struct mf_netrs_response) + status);
}

MF_INLINE mf_verdict check_request(const struct call *call)
{
    return call->in->length < sizeof(struct mf_netrs_request) + sizeof(struct mf_ends) ? MF_V_TRUNCATED : MF_V_OK;
}

MF_INLINE mf_verdict check_response(const struct call *call)
{
    if (call->in->length < sizeof(struct mf_netrs_response) + sizeof(struct mf_ends))
        return MF_V_TRUNCATED;
    uint32_t status = status_length(call);
    if (status > MF_NETRS_STATUS_MAX)
        return MF_V_LONG_STATUS;
    return call->in->length < sizeof(struct mf_netrs_response) + status + sizeof(struct mf_ends) ? MF_V_TRUNCATED : MF_V_OK;
}

/* Leading bytes of a request that may be rewritten: up to the client's address, in words of 4 bytes. */
#define REQUEST_REWRITTEN 36u

_Static_assert(sizeof(struct mf_netrs_request) + sizeof(struct mf_address) <= REQUEST_REWRITTEN, "all of it");

MF_INLINE mf_verdict pass_request(const struct call *call, const struct mf_address *to)
{
    return forward(call->in, call->out, to, REQUEST_REWRITTEN);
}

/* Forwards an answer, whose start and marker may have been rewritten. */
MF_INLINE mf_verdict pass_response(const struct call *call, const struct mf_address *to)
{
    return forward(call->in, call->out, to, sizeof(struct mf_netrs_response));
}

#endif
