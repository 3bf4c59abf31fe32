struct metadata_t {
#include "../metadata.p4"
    // The bound of `accepted`.
    bit<32> limit;
    // `accepted` before the packet, if it was read.
    bit<32> number;
    bit<1> counted;
    // `add_ptr` as a search found it.
    bit<32> add;
    // Which of two levels gave a task, one-hot: 2 or 8 the first, 4 the second, 1 none; 0: no access.
    bit<PREDICATE_BITS> found_1_2;
    bit<PREDICATE_BITS> found_3_4;
    // Required resources that the executor lacks.
    bit<8> missing;
}
