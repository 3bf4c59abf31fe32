// The safe queue (docs/internals/asic.md): the whole of ingress, in the order in which a packet sees it.
//
// The queue has four levels, 1 first. A level is a ring of entries, one task each; the entries of all levels are the
// cells of one register for each word of a task (entry.p4). Pointers grow by 4 and wrap, and their lowest two bits are
// the level, so their low bits are the number of an entry. A level has
//
//     add_ptr       where its next task goes (accept.p4)
//     retrieve_ptr  where its first task is (head.p4)
//     queued        how many tasks it has (count.p4)
//     accepted      how many tasks were ever let in (accept.p4)
//     credit        how many were ever assigned, and N, those that it may have at once: `accepted` may not pass it
//                   (route.p4)
//     credit_seen   what was known of `credit` last, in a stage before `accepted` (accept.p4)
//
// A packet accesses a register once a pass, and stages go forward only. So whatever must look twice takes another pass:
//
//     SUBMIT    stores its first task; the others follow as REST, one a pass. A task that is beyond `credit_seen` reads
//               `credit` and goes round with it: it is refused only if it is beyond that, too.
//     RETRIEVE  takes the first task of the first level that has one, and is its ASSIGN; without one it is a NO_OP. If
//               the executor lacks a resource that this task requires, the packet goes round as SWAP.
//     SWAP      a search: exchanges its task with that of the next entry, until the executor has all that it requires:
//               ASSIGN. At the tail it leaves its task there, and goes on at the next level (RETRIEVE), or is a NO_OP.
#include "metadata.p4"
#include "accept.p4"
#include "count.p4"
#include "head.p4"
#include "../entry.p4"
#include "entry.p4"
#include "../answer.p4"
#include "route.p4"

// Stage 0, while it is not known yet whose packet it is: it changes no header.
control Look(inout headers_t h, inout metadata_t m) {
    Kind() kind;
    Look_up() look_up;
    apply { kind.apply(h, m); look_up.apply(h, m); }
}

control Queue(inout headers_t h, inout metadata_t m, INTRINSIC) {
    Accept() accept_task;
    Latest() latest;
    Enter() enter;
    Count_1_2() count_1_2;
    Count_3_4() count_3_4;
    Head() head;
    First_words() first_words;
    Words() words;
    Compare() compare;
    Credit() credit;
    Route() route;
    Last_words() last_words;
    Answer() answer;
    apply {
        accept_task.apply(h, m);
        latest.apply(h, m);
        enter.apply(h, m, INTRINSIC_PASSED);
        count_1_2.apply(h, m);
        count_3_4.apply(h, m);
        head.apply(h, m);
        first_words.apply(h, m);
        compare.apply(h, m);
        words.apply(h, m);
        credit.apply(h, m);
        route.apply(h, m, INTRINSIC_PASSED);
        last_words.apply(h, m);
        answer.apply(h, m);
    }
}

// The program's part of egress: none.
control Behind(inout headers_t h, inout metadata_t m, EGRESS) { apply { } }
