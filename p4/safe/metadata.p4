struct metadata_t {
#include "../metadata.p4"
    // `accepted` may not go beyond this.
    bit<32> limit;
    // `accepted` as it was.
    bit<32> number;
    // `add_ptr` as a search found it.
    bit<32> add;
    // Which of two levels gave a task, one-hot: 2 the first, 4 the second, 8 the first of two; 1: none; 0: nobody has looked.
    bit<8> found_1_2;
    bit<8> found_3_4;
    // The resources that the task needs and the executor does not have.
    bit<8> missing;
}
