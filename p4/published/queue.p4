// The papers' queue, as published (docs/internals/asic.md): the whole of ingress and egress in the order in which a packet sees them.

// What the pointers say: to a SUBMIT, the queue has space, is full, or `retrieve_ptr` is ahead of `add_ptr`; to a search, its entry is
// within the queue, or it is not.
const bit<8> SPACE = 1;
const bit<8> FULL = 2;
const bit<8> OVERRUN = 3;
const bit<8> INSIDE = 4;
const bit<8> TAIL = 5;

#include "metadata.p4"
#include "../front.p4"
#include "kind.p4"
#include "pointers.p4"
#include "guard.p4"
#include "../answer.p4"
#include "route.p4"
#include "../entry.p4"
#include "entry.p4"

control Queue(inout headers_t h, inout metadata_t m, INTRINSIC) {
    Kind() kind;
    Refuse_all() refuse_all;
    Look_up() look_up;
    Latest() latest;
    Judge() judge;
    Pointers() pointers;
    Distances() distances;
    Status() status;
    Guard() guard;
    Route() route;
    apply {
        kind.apply(h, m, INTRINSIC_PASSED);
        if (h.mf.op == Op.SUBMIT) { refuse_all.apply(h); }
        look_up.apply(h, m);
        latest.apply(h, m);
        judge.apply(h, m, INTRINSIC_PASSED);
        pointers.apply(h, m);
        distances.apply(h, m);
        status.apply(h, m);
        guard.apply(h, m);
        route.apply(h, m, INTRINSIC_PASSED);
    }
}

control Behind(inout headers_t h, inout metadata_t m, EGRESS) {
    Copy() copy;
    Entries() entries;
    Answer() answer;
    apply {
        if (IS_COPY) { copy.apply(h, m); }
        else {
            entries.apply(h, m);
            answer.apply(h, m);
            // Its task is stored; nobody waits for it.
            if (h.mf.op == Op.BACK && m.role == Role.PLACE) { DROP_AT_LAST; }
        }
    }
}
