// TNA (Tofino 1): what the controls need of a target.
#include <tna.p4>

// The recirculation port, and the port of the switch's own CPU.
const PortId_t RECIRCULATION_PORT = 68;
const PortId_t CPU_PORT = 192;

// A match for some of a PREDICATE's values (1 none, 2 the first, 4 the second, 8 both).
// Also matches 0: no access.
#define ONE_HOT(bits) 0 &&& (0xF ^ (bits))
#define PREDICATE_BITS 8

#include "tofino.p4"
