// What a packet does: `kind` sets it from the operation, and later tables change it with their decisions.
// Tables match on it, and the words of the entries (entry.p4) on nothing else.
// One enum for both programs, because they share controls that read it.
enum bit<8> Role {
    NONE = 0,
    // Queue a task. Safe program: if `credit_seen`, which may be older than `credit`, leaves room.
    SUBMIT = 1,
    // Safe: queue a task, if the packet's value of `credit` or a newer one leaves room.
    REST = 2,
    // Safe: refuse a task, even with room.
    REFUSE = 3,
    // An executor wants a task. Safe program: after `count`, if there is none.
    RETRIEVE = 4,
    // A search. At an entry: exchanges its task and the packet's.
    SWAP = 5,
    // At an entry: writes the SUBMIT's task.
    STORE = 6,
    // At an entry: writes the packet's task.
    PLACE = 7,
    // At an entry: reads the task.
    TAKE = 8,
    // Published: the operations of the same names.
    BACK = 9,
    OWE_NO_OP = 10,
    REPAIR_ADD = 11,
    REPAIR_RETRIEVE = 12,
    // Safe: a search during which the queue ran empty: one more pass, to place its task at the tail.
    AGAIN = 13,
    // A RETRIEVE of another epoch, or of an unregistered slot: answered by RESET.
    RESET = 14,
    // For the controller.
    CONTROL = 15
}
