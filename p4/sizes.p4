// Sizes: -DCELL_BITS=… and so on set others.

// Bits of the entries' numbers, all four levels: 16,384 each. Two bits are the level.
#ifndef CELL_BITS
#define CELL_BITS 16
#endif
#define CELLS (1 << CELL_BITS)

// Executor slots.
#ifndef SLOT_BITS
#define SLOT_BITS 14
#endif
#define SLOTS (1 << SLOT_BITS)

// Prefixes of forwarded packets.
#ifndef ROUTES
#define ROUTES 1024
#endif
