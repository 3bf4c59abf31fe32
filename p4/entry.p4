// A word of the entries, and what a packet does to it, which depends on its role only.
#define ENTRY(name, stage, width, submitted, carried) \
    REGISTER(name, width, bit<CELL_BITS>, CELLS) \
    ACCESS_IT(name##_set, name, width, bit<CELL_BITS>, v = submitted;) \
    ACCESS_IT(name##_put, name, width, bit<CELL_BITS>, v = carried;) \
    ACCESS(name##_get, name, width, bit<CELL_BITS>, width, rv = v;) \
    ACCESS(name##_swap, name, width, bit<CELL_BITS>, width, rv = v; v = carried;) \
    action name##_store() { DO(name##_set, m.at[CELL_BITS - 1:0]); } \
    action name##_place() { DO(name##_put, m.at[CELL_BITS - 1:0]); } \
    action name##_load() { GET(carried, name##_get, m.at[CELL_BITS - 1:0]); } \
    action name##_exchange() { GET(carried, name##_swap, m.at[CELL_BITS - 1:0]); } \
    AT_STAGE(stage) table name##_of { \
        key = { m.role: exact; } \
        actions = { name##_store; name##_place; name##_load; name##_exchange; @defaultonly NoAction; } \
        const entries = { \
            (Role.STORE): name##_store(); (Role.PLACE): name##_place(); (Role.TAKE): name##_load(); (Role.SWAP): name##_exchange(); } \
        const default_action = NoAction; }
