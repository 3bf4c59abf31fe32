/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Drop reasons of the tasks program for a datagram or one record in it, in addition to the common ones (verdict.h). */
#ifndef MIDFLIGHT_TASKS_VERDICT_H
#define MIDFLIGHT_TASKS_VERDICT_H

#include "midflight/verdict.h"

#define MF_TASKS_VERDICTS(X)                                                                                \
    X(BAD_PRIORITY, REFUSED, "a task's priority is 0 or below the lowest level of this switch")             \
    X(BAD_ARGUMENT, REFUSED, "a task's argument has a length that its form does not allow")                 \
    X(FOREIGN_EPOCH, REFUSED, "sent to a switch that ran here before; answered by RESET")                   \
    X(FOREIGN_SLOT, PARTLY, "a slot that is not registered, or not any more; answered by RESET")            \
    X(SPOOFED_SLOT, PARTLY, "a slot that is registered at another address; answered by RESET")              \
    X(REPLAYED, PARTLY, "a slot named by a packet that is not later than the last one that named it")       \
    X(STALE_WAIT, PARTLY, "a wait older than the slot's present one")                                       \
    X(REPEATED_WAIT, PARTLY, "a wait repeated, kept parked or assigned the same task again")                \
    X(STALE_REGISTER, PARTLY, "a registration older than the slot's present one")                           \
    X(REPEATED_SUBMIT, PARTLY, "a SUBMIT or CANCEL repeated within the window, answered as before")         \
    X(TOO_OLD, PARTLY, "a SUBMIT or CANCEL below the client's window")                                      \
    X(FULL, PARTLY, "a task that found the queue full and was returned to its client")                      \
    X(CLIENTS_FULL, PARTLY, "a SUBMIT of a new client that found no room for one")                          \
    X(SLOTS_FULL, PARTLY, "a slot that found no room")                                                      \
    X(PLACES_FULL, PARTLY, "a slot whose place found no room, and which is registered without it")           \
    X(NO_PLACE, PARTLY, "a task that prefers a place without slots, and was accepted without preference")   \
    X(QUEUE_SHARE, PARTLY, "a task of an address that holds its share of the queue, returned to its client") \
    X(ARGUMENTS_FULL, PARTLY, "a task whose argument found no room, returned to its client")                \
    X(ARGUMENTS_SHARE, PARTLY, "a task of an address whose arguments hold their share, returned to its client") \
    X(CLIENTS_SHARE, PARTLY, "a SUBMIT of a new client of an address that holds its share of the clients")  \
    X(SLOTS_SHARE, PARTLY, "a slot of an address that holds its share of the slots")                        \
    X(NOT_QUEUED, PARTLY, "a task to cancel that the switch does not have (any more)")

enum mf_tasks_verdict {
    MF_V_BEFORE_TASKS = MF_V_COMMON_END - 1,
#define X(name, class, text) MF_V_##name,
    MF_TASKS_VERDICTS(X)
#undef X
    MF_V_TASKS_END
};

#endif
