// The papers' queue, as published, with its errors (docs/internals/asic.md): all of ingress and egress, in a packet's
// order. Listings are those of Falcon, searches and levels those of Bolt.
//
// The queue has four levels, 1 first. A level is a ring of entries, one task each; the entries of all levels are the
// cells of one register for each word of a task (entry.p4, in egress). A level has
//
//     add_ptr, retrieve_ptr  the entries of its next task and of its first one (pointers.p4)
//     is_valid               for each entry: whether it has a task, and what this requires (guard.p4)
//     is_repairing           one bit for each pointer: a REPAIR of it is in flight (guard.p4)
//
// A packet accesses a register once per pass, so it increments pointers before it knows whether that is right:
//
//     SUBMIT    increments `add_ptr` and stores its first task; the others follow as REST, one per pass. If the queue
//               was full, a copy recirculates as REPAIR_ADD and sets `add_ptr` back. If `retrieve_ptr` was ahead, a
//               copy sets that back (REPAIR_RETRIEVE).
//     RETRIEVE  increments `retrieve_ptr`. If the entry has no task, it asks the next level, or is a NO_OP. If the
//               executor lacks a resource that the task requires, the packet recirculates as SWAP.
//     SWAP      a search: exchanges its task with the next entry's until the executor has all that the task requires:
//               ASSIGN. At the tail its task recirculates as BACK, to be queued again, and a copy as OWE_NO_OP, the
//               answer to the executor.

// The state of the pointers: for a SUBMIT, the queue has space, is full, or `retrieve_ptr` is ahead of `add_ptr`;
// for a search, its entry is within the queue, or not.
const bit<8> SPACE = 1;
const bit<8> FULL = 2;
const bit<8> OVERRUN = 3;
const bit<8> INSIDE = 4;
const bit<8> TAIL = 5;

#include "metadata.p4"
#include "kind.p4"
#include "../front.p4"
#include "pointers.p4"
#include "guard.p4"
#include "../answer.p4"
#include "route.p4"
#include "../entry.p4"
#include "entry.p4"

// Stage 0, before the packet's destination is known: changes no header.
control Look(inout headers_t h, inout metadata_t m) {
    Kind() kind;
    Look_up() look_up;
    apply { kind.apply(h, m); look_up.apply(h, m); }
}

control Queue(inout headers_t h, inout metadata_t m, INTRINSIC) {
    Refuse_all() refuse_all;
    Latest() latest;
    Judge() judge;
    Pointers() pointers;
    Distances() distances;
    Status() status;
    Guard() guard;
    Route() route;
    apply {
        latest.apply(h, m);
        judge.apply(h, m, INTRINSIC_PASSED);
        if (h.mf.op == Op.SUBMIT) { refuse_all.apply(h); }
        pointers.apply(h, m);
        distances.apply(h, m);
        status.apply(h, m);
        guard.apply(h, m);
        route.apply(h, m, INTRINSIC_PASSED);
    }
}

// The program's part of egress.
control Behind(inout headers_t h, inout metadata_t m, EGRESS) {
    Copy() copy;
    Entries() entries;
    Answer() answer;
    apply {
        if (IS_COPY) { copy.apply(h, m); }
        else {
            entries.apply(h, m);
            answer.apply(h, m);
            // Its task is stored, and no answer is due.
            if (h.mf.op == Op.BACK && m.role == Role.PLACE) { DROP_AT_LAST; }
        }
    }
}
