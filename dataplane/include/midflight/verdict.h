/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Drop reasons: a switch gives each datagram, or one record in it, an outcome. Here are the common ones; each program adds its own
 * (tasks_verdict.h). C, Rust, metrics and docs have the same names; `midflight_drops_total{reason="..."}` uses the names in lower
 * case.
 */
#ifndef MIDFLIGHT_VERDICT_H
#define MIDFLIGHT_VERDICT_H

#include <stdint.h>

/*
 * X(name, class, text). The class says what happened to the datagram:
 *
 *   TAKEN    it was taken
 *   REFUSED  all of it was refused, and it changed nothing (T11)
 *   PARTLY   one record or task of it was refused, or it was answered without being taken
 */
#define MF_COMMON_VERDICTS(X)                                                                              \
    X(OK, TAKEN, "taken")                                                                                  \
    X(FORWARDED, TAKEN, "taken, and forwarded to another address")                                         \
    X(TRUNCATED, REFUSED, "shorter than its header and its records")                                       \
    X(TRAILING, REFUSED, "longer than its header and its records")                                         \
    X(BAD_MAGIC, REFUSED, "not a Midflight packet")                                                        \
    X(BAD_VERSION, REFUSED, "a version of the format that this switch does not speak; answered by VERSION") \
    X(UNKNOWN_KEY, REFUSED, "signed with a key: this switch has none")                                     \
    X(UNKNOWN_OPERATION, REFUSED, "an operation that does not exist")                                      \
    X(NOT_FOR_SWITCH, REFUSED, "an operation that is never sent to a switch")                              \
    X(BAD_COUNT, REFUSED, "no records, or more than the operation may carry")                              \
    X(NO_COOKIE, REFUSED, "without the cookie of its identity and address; answered by COOKIE")

enum mf_common_verdict {
#define X(name, class, text) MF_V_##name,
    MF_COMMON_VERDICTS(X)
#undef X
    MF_V_COMMON_END /* first reason of a program */
};

/* A common reason, or one of the program's own. */
typedef uint32_t mf_verdict;

#endif
