    // Metadata for the shared controls; each program's struct includes this.
    // `found` is a Found, `role` a Role.
    bit<8> found;
    bit<8> role;
    // Its level as an index, from 0; and as in packets, from 1.
    bit<8> lvl;
    bit<8> level;
    // Its entry.
    bit<32> at;
    // Tasks of a SUBMIT that are left.
    bit<8> left;
    // The port of its request.
    bit<16> came_from;
    // The checksum of its IP header is wrong.
    bool wrong_sum;
    // The lengths in its IP and UDP headers match its count.
    bit<1> formed;
    // It is for this switch.
    bit<1> own;
    // Its tasks have a placement preference.
    bit<8> prefers;
    // Recirculated: checked in its first pass.
    bit<1> checked;
    // It is an answer.
    bit<1> answer;
    // Its first task is handled: the deparser omits it.
    bit<1> popped;
    // Of a RETRIEVE: the epoch is current, the slot is the sender's.
    bit<1> present;
    bit<1> known;
    // Its counter is later than the slot's last, one-hot: 2 is yes, 1 is no.
    bit<PREDICATE_BITS> fresh;
