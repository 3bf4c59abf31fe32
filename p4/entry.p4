// One word of all entries: a register with a cell for each, and the table for what a packet does to its cell (m.at).
// That depends only on its role: it stores the word of a SUBMIT's task (`submitted`) or of the task that it carries
// (`carried`), loads it into `carried`, or exchanges the two.
#define BANK(name, stage, width, bits, submitted, carried) \
    REGISTER(name, width, bit<bits>, 1 << bits) \
    ACCESS_IT(name##_set, name, width, bit<bits>, v = submitted;) \
    ACCESS_IT(name##_put, name, width, bit<bits>, v = carried;) \
    ACCESS(name##_get, name, width, bit<bits>, width, rv = v;) \
    ACCESS(name##_swap, name, width, bit<bits>, width, rv = v; v = carried;) \
    action name##_store() { DO(name##_set, m.at[bits - 1:0]); } \
    action name##_place() { DO(name##_put, m.at[bits - 1:0]); } \
    action name##_load() { GET(carried, name##_get, m.at[bits - 1:0]); } \
    action name##_exchange() { GET(carried, name##_swap, m.at[bits - 1:0]); } \
    AT_STAGE(stage) table name##_of { \
        key = { m.role: exact; } \
        actions = { name##_store; name##_place; name##_load; name##_exchange; @defaultonly NoAction; } \
        const entries = { \
            (Role.STORE): name##_store(); (Role.PLACE): name##_place(); \
            (Role.TAKE): name##_load(); (Role.SWAP): name##_exchange(); } \
        const default_action = NoAction; }

// If one register has too few cells for a word, there are two; the highest bit of the entry's number selects one.
#if defined(BANK_BITS) && BANK_BITS < CELL_BITS
#define ENTRY(name, stage, width, submitted, carried) \
    BANK(name##_bank_0, stage, width, BANK_BITS, submitted, carried) \
    BANK(name##_bank_1, stage, width, BANK_BITS, submitted, carried)
#define APPLY(name) \
    if (m.at[BANK_BITS:BANK_BITS] == 0) { name##_bank_0_of.apply(); } else { name##_bank_1_of.apply(); }
#else
#define ENTRY(name, stage, width, submitted, carried) BANK(name, stage, width, CELL_BITS, submitted, carried)
#define APPLY(name) name##_of.apply();
#endif
