// What the controls need of a target, as TNA (Tofino 1) has it.
#include <tna.p4>

// The port whose packets come back by themselves, and the one of the switch's own CPU.
const PortId_t RECIRCULATION_PORT = 68;
const PortId_t CPU_PORT = 192;

// A match for some of a PREDICATE's values (1 none, 2 the first, 4 the second, 8 both). It matches 0, too: no access
// was made.
#define ONE_HOT(bits) 0 &&& (0xF ^ (bits))
#define PREDICATE_BITS 8

#include "tofino.p4"
