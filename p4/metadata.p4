    // Of the metadata, what the shared controls need; each program's struct includes this.
    bit<8> found;
    bit<8> role;
    // From 0.
    bit<8> lvl;
    // From 1.
    bit<8> level;
    // The entry that this packet is about.
    bit<32> at;
    // Records of a SUBMIT that are left.
    bit<8> left;
    bit<16> came_from;
    // The checksum of its IP header is wrong.
    bool wrong_sum;
    // Its lengths agree with its count.
    bit<1> formed;
    // It is for this switch.
    bit<1> own;
    // Its tasks say where they prefer to run.
    bit<8> prefers;
    // It has gone round: it was checked before.
    bit<1> checked;
    // It is an answer.
    bit<1> answer;
    // Its first record is done with.
    bit<1> popped;
    // Of a RETRIEVE: the epoch is the present one, the slot is the sender's.
    bit<1> present;
    bit<1> known;
    // Its counter is later than the slot's last, one-hot: 2 is yes, 1 is no.
    bit<PREDICATE_BITS> fresh;
