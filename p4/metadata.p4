    // Of the metadata, what the shared controls need; each program's struct includes this.
    // One of Found, and one of Role.
    bit<8> found;
    bit<8> role;
    // The level that it is about, as an index, from 0; and as packets name it, from 1.
    bit<8> lvl;
    bit<8> level;
    // The entry that this packet is about.
    bit<32> at;
    // Tasks of a SUBMIT that are left.
    bit<8> left;
    // The port by which its question came.
    bit<16> came_from;
    // The checksum of its IP header is wrong.
    bool wrong_sum;
    // The lengths of its IP and UDP headers are those of its count.
    bit<1> formed;
    // It is for this switch.
    bit<1> own;
    // Its tasks say where they prefer to run.
    bit<8> prefers;
    // It goes round: it was checked in its first pass.
    bit<1> checked;
    // It is an answer.
    bit<1> answer;
    // Its first task is done with: the deparser leaves it out.
    bit<1> popped;
    // Of a RETRIEVE: the epoch is the present one, the slot is the sender's.
    bit<1> present;
    bit<1> known;
    // Its counter is later than the slot's last, one-hot: 2 is yes, 1 is no.
    bit<PREDICATE_BITS> fresh;
