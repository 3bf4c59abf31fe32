// The safe queue (docs/internals/asic.md): all of ingress, in a packet's order.
//
// The queue has four levels, 1 first. A level is a ring of entries, one task each; the entries of all levels are the
// cells of one register for each word of a task (entry.p4). Pointers grow by 4 and wrap, and their lowest two bits are
// the level, so their low bits are the number of an entry. A level has
//
//     add_ptr       the entry of its next task (accept.p4)
//     retrieve_ptr  the entry of its first task (head.p4)
//     queued        its number of tasks (count.p4)
//     accepted      the number of tasks accepted so far (accept.p4)
//     credit        the number of tasks assigned so far, plus N, the tasks that it may have at once: the bound of
//                   `accepted` (route.p4)
//     credit_seen   the last known value of `credit`, in a stage before `accepted` (accept.p4)
//
// A packet accesses a register once per pass, and stages go forward only. So a second access takes another pass:
//
//     SUBMIT    stores its first task; the others follow as REST, one per pass. A task beyond `credit_seen` reads
//               `credit` and recirculates with it: it is refused only if it is beyond that, too.
//     RETRIEVE  takes the first task of the first level that has one, and is its ASSIGN; without one it is a NO_OP. If
//               the executor lacks a resource that this task requires, the packet recirculates as SWAP.
//     SWAP      a search: exchanges its task with the next entry's until the executor has all that the task requires:
//               ASSIGN. At the tail it leaves its task and continues at the next level (RETRIEVE), or is a NO_OP.
#include "metadata.p4"
#include "accept.p4"
#include "count.p4"
#include "head.p4"
#include "../entry.p4"
#include "entry.p4"
#include "../answer.p4"
#include "route.p4"

// Stage 0, before the packet's destination is known: changes no header.
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
