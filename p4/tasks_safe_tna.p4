// The safe queue for TNA: Tofino 1. See docs/internals/p4.md.
#include <core.p4>
#include "target/tna.p4"
#include "sizes.p4"
#include "headers.p4"
#include "roles.p4"
#include "safe/queue.p4"
#include "target/tna_no_egress.p4"
