struct metadata_t {
#include "../metadata.p4"
    // `accepted` may not go beyond this.
    bit<32> limit;
    // `accepted` as it was, if it was asked.
    bit<32> number;
    bit<1> counted;
    // `add_ptr` as a search found it.
    bit<32> add;
    // Which of two levels gave a task, one-hot: 2 or 8 the first, 4 the second, 1 none; 0: nobody has asked.
    bit<PREDICATE_BITS> found_1_2;
    bit<PREDICATE_BITS> found_3_4;
    // The resources that the task requires and the executor does not have.
    bit<8> missing;
}
