/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Drop reasons of the store program, in addition to the common ones (verdict.h). */
#ifndef MIDFLIGHT_STORE_VERDICT_H
#define MIDFLIGHT_STORE_VERDICT_H

#include "midflight/verdict.h"

#define MF_STORE_VERDICTS(X)                                                                                                \
    X(BAD_KEY, REFUSED, "a key that is longer than a key may be, or where no key belongs")                                  \
    X(BAD_STATUS, REFUSED, "a reply with a status that does not exist")                                                     \
    X(NO_CLIENT, REFUSED, "a READ_REPLY that does not say where it goes")                                                   \
    X(UNKNOWN_SET, REFUSED, "a replica set that this switch does not serve; a request is answered so")                      \
    X(INACTIVE, REFUSED, "a request for a set that has no session now; answered so")                                        \
    X(FOREIGN_REPLICA, REFUSED, "not from the address of a replica of the set")                                             \
    X(FOREIGN_EPOCH, REFUSED, "a reply without the secret of the set's incarnation: forged, or from before it")             \
    X(FOREIGN_INCARNATION, REFUSED, "meant for another incarnation of the set; answered by STATE")                          \
    X(BAD_KGROUPS, REFUSED, "a HEARTBEAT with another number of key groups than the set has here; answered by STATE")       \
    X(OLD_SESSION, REFUSED, "a HEARTBEAT of a session that has ended, or is below the present one; answered by STATE")      \
    X(BAD_SESSION, REFUSED, "a HEARTBEAT whose leader has no address, or that contradicts its session; answered by STATE")  \
    X(OLD_ECHO, REFUSED, "a HEARTBEAT whose echo is too old for a lease, or not of this switch; answered by STATE")

enum mf_store_verdict {
    MF_V_BEFORE_STORE = MF_V_COMMON_END - 1,
#define X(name, class, text) MF_V_##name,
    MF_STORE_VERDICTS(X)
#undef X
    MF_V_STORE_END
};

#endif
