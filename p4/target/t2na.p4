// T2NA (Tofino 2): what the controls need of a target.
#include <t2na.p4>

const PortId_t RECIRCULATION_PORT = 6;
const PortId_t CPU_PORT = 0;

// A stage's memory has two halves, and a register fits into one of them: 64 K words of 32 bits at most.
#define BANK_BITS 16
#ifndef CELL_BITS
#define CELL_BITS 17
#endif

// A stateful ALU has two more comparators than Tofino 1's, and a PREDICATE 16 bits.
// The bits of comparators that a program does not use are undocumented, so they are ignored here.
#define ONE_HOT(bits) 0 &&& (0xFFFF ^ 0x1111 * (bits))
#define PREDICATE_BITS 16

#include "tofino.p4"
