// The safe queue for v1model: BMv2's simple_switch. See docs/internals/p4.md.
#include <core.p4>
#include "target/v1model.p4"
#include "sizes.p4"
#include "headers.p4"
#include "roles.p4"
#include "safe/queue.p4"
#include "target/v1model_switch.p4"
