// The safe queue of docs/internals/asic.md: the whole of ingress in the order in which a packet sees it.
#include "metadata.p4"
#include "../front.p4"
#include "accept.p4"
#include "count.p4"
#include "head.p4"
#include "../entry.p4"
#include "entry.p4"
#include "../answer.p4"
#include "route.p4"

control Queue(inout headers_t h, inout metadata_t m, INTRINSIC) {
    Kind() kind;
    Look_up() look_up;
    Accept() accept_task;
    Latest() latest;
    Judge() judge;
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
        kind.apply(h, m, INTRINSIC_PASSED);
        look_up.apply(h, m);
        accept_task.apply(h, m);
        latest.apply(h, m);
        judge.apply(h, m, INTRINSIC_PASSED);
        enter.apply(h, m);
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

// Egress does nothing.
control Behind(inout headers_t h, inout metadata_t m, EGRESS) { apply { } }
