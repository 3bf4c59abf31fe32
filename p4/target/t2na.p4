// What the controls need of a target, as T2NA (Tofino 2) has it.
#include <t2na.p4>

const PortId_t RECIRCULATION_PORT = 6;
const PortId_t CPU_PORT = 0;

// A stage's memory has two halves, and a register lies in one of them: 64 K words of 32 bits at most.
#define BANK_BITS 16
#ifndef CELL_BITS
#define CELL_BITS 17
#endif

// A stateful ALU has two comparators more than that of Tofino 1, and a PREDICATE 16 bits. What the two say that a
// program does not use is not documented: their bits do not matter here.
#define ONE_HOT(bits) 0 &&& (0xFFFF ^ 0x1111 * (bits))
#define PREDICATE_BITS 16

#include "tofino.p4"
