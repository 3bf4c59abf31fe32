struct metadata_t {
#include "../metadata.p4"
    // The pointers as the packet found them; `add` goes with a copy, as `copy` and `copy_level` do.
    @field_list(COPIED) bit<32> add;
    bit<32> retrieve;
    // `add` less `retrieve`.
    bit<32> length;
    // `add` less the place of a search.
    bit<32> ahead;
    // The pointer to this packet's entry, and the one behind it.
    bit<32> pointer;
    bit<32> next;
    // What the pointers say.
    bit<8> status;
    // The level's two flags in the bitmap, and the one that this packet raises or clears.
    bit<8> add_flag;
    bit<8> retrieve_flag;
    bit<8> flag;
    // The bitmap as it was, and then this packet's flag in it.
    bit<8> flags;
    // The operation that repairs the wrong pointer.
    bit<8> repair;
    // The copy that goes beside the packet: its operation, or 0; and the number of its level.
    @field_list(COPIED) bit<8> copy;
    @field_list(COPIED) bit<8> copy_level;
    COPY_METADATA
    // A cell of `is_valid` is the bit VALID, and the mask of what the task requires: what the packet stores, what the
    // executor has, what was there, and what it lacks of that.
    bit<16> mine;
    bit<16> has;
    bit<16> theirs;
    bit<16> missing;
}
