struct metadata_t {
#include "../metadata.p4"
    // The pointers as the packet found them; a copy has `add`, `copy` and `copy_level`.
    @field_list(COPIED) bit<32> add;
    bit<32> retrieve;
    // `add` - `retrieve`.
    bit<32> length;
    // `add` - the position of a search.
    bit<32> ahead;
    // The pointer to this packet's entry, and the next one.
    bit<32> pointer;
    bit<32> next;
    // The state of the pointers.
    bit<8> status;
    // The level's two flags in the bitmap, and the one that this packet sets or clears.
    bit<8> add_flag;
    bit<8> retrieve_flag;
    bit<8> flag;
    // The bitmap before the packet, then this packet's flag in it.
    bit<8> flags;
    // The operation that repairs the wrong pointer.
    bit<8> repair;
    // A copy of the packet: its operation, or 0; and the number of its level.
    @field_list(COPIED) bit<8> copy;
    @field_list(COPIED) bit<8> copy_level;
    COPY_METADATA
    // A cell of `is_valid` is the bit VALID, and the mask of what the task requires:
    // what the packet stores, what the executor has, what was there, and what the executor lacks of that.
    bit<16> mine;
    bit<16> has;
    bit<16> theirs;
    bit<16> missing;
}
