/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Drop reasons of the cache program, in addition to the common ones (verdict.h). */
#ifndef MIDFLIGHT_CACHE_VERDICT_H
#define MIDFLIGHT_CACHE_VERDICT_H

#include "midflight/verdict.h"

#define MF_CACHE_VERDICTS(X)                                                                                      \
    X(UNKNOWN_SENDER, REFUSED, "from an address that is no host of this rack, no server and no operator")         \
    X(UNKNOWN_CLIENT, REFUSED, "an answer for a client that is in no rack that this operator knows")              \
    X(UNKNOWN_SERVER, REFUSED, "a request whose backup is no server, when it was needed")                         \
    X(OTHER_SERVER, REFUSED, "an answer of a server that names another one as its sender")                        \
    X(LONG_STATUS, REFUSED, "an answer with a longer status than a server may send")

enum mf_cache_verdict {
    MF_V_BEFORE_CACHE = MF_V_COMMON_END - 1,
#define X(name, class, text) MF_V_##name,
    MF_CACHE_VERDICTS(X)
#undef X
    MF_V_CACHE_END
};

#endif
