/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/*
 * Every failure has a name (rule 6 of the house): one list of what the switch may say of a datagram, or of
 * one record in it. C, Rust, metrics and docs/wire.md share it; `midflight_drops_total{reason="..."}` uses
 * the names in lower case.
 */
#ifndef MIDFLIGHT_VERDICT_H
#define MIDFLIGHT_VERDICT_H

/* Reasons up to MF_V_FOREIGN_EPOCH speak of a whole datagram, which then changed nothing (T11); the later
 * ones of one record in it, of one task, or of one SUBMIT or CANCEL that is answered all the same. */
#define MF_VERDICTS(X)                                                                             \
    X(OK, "taken")                                                                                 \
    X(TRUNCATED, "shorter than its header and its records")                                        \
    X(TRAILING, "longer than its header and its records")                                          \
    X(BAD_MAGIC, "not a Midflight packet")                                                         \
    X(BAD_VERSION, "a version of the format that this switch does not speak; answered by VERSION") \
    X(UNKNOWN_KEY, "signed with a key: this switch has none")                                      \
    X(UNKNOWN_OPERATION, "an operation that does not exist")                                       \
    X(NOT_FOR_SWITCH, "an operation that is never sent to a switch")                               \
    X(BAD_COUNT, "no records, or more than the operation may carry")                               \
    X(BAD_PRIORITY, "a task's priority is 0 or below the lowest level of this switch")             \
    X(BAD_ARGUMENT, "a task's argument length is neither 0 to 16 nor by reference")                \
    X(NO_COOKIE, "without the cookie of its identity and address; answered by COOKIE")             \
    X(FOREIGN_EPOCH, "sent to a switch that ran here before; answered by RESET")                   \
    X(FOREIGN_SLOT, "a slot that is not registered, or not any more; answered by RESET")           \
    X(SPOOFED_SLOT, "a slot that is registered at another address; answered by RESET")             \
    X(REPLAYED, "a slot named by a packet that is not later than the last one that named it")      \
    X(STALE_WAIT, "a wait older than the slot's present one")                                      \
    X(REPEATED_WAIT, "a wait repeated, kept parked or assigned the same task again")               \
    X(STALE_REGISTER, "a registration older than the slot's present one")                          \
    X(REPEATED_SUBMIT, "a SUBMIT or CANCEL repeated within the window, answered as before")        \
    X(TOO_OLD, "a SUBMIT or CANCEL below the client's window")                                     \
    X(FULL, "a task that found the queue full and was returned to its client")                     \
    X(CLIENTS_FULL, "a SUBMIT of a new client that found no room for one")                         \
    X(SLOTS_FULL, "a slot that found no room")                                                     \
    X(QUEUE_SHARE, "a task of an address that holds its share of the queue, returned to its client")\
    X(CLIENTS_SHARE, "a SUBMIT of a new client of an address that holds its share of the clients") \
    X(SLOTS_SHARE, "a slot of an address that holds its share of the slots")                       \
    X(NOT_QUEUED, "a task to cancel that is not queued (any more)")

enum mf_verdict {
#define X(name, text) MF_V_##name,
    MF_VERDICTS(X)
#undef X
    MF_V_END
};

#endif
