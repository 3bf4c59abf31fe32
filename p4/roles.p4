// What a packet is doing: `kind` sets it from the operation, and later tables change it as the packet's fate is
// decided. Tables match on it, and the words of the entries (entry.p4) on nothing else. One enum for both programs,
// because the controls that they share read it.
enum bit<8> Role {
    NONE = 0,
    // A task is to be queued. Safe program: if there is room by `credit_seen`, which may be older than `credit`.
    SUBMIT = 1,
    // Safe: a task is to be queued, if there is room by the value of `credit` that the packet has read, or a newer one.
    REST = 2,
    // Safe: a task that the switch cannot queue, whatever room there is.
    REFUSE = 3,
    // An executor wants a task. Safe program: still so behind `count`, if there is none.
    RETRIEVE = 4,
    // A search. To an entry: its task and the packet's are exchanged.
    SWAP = 5,
    // To an entry: the SUBMIT's task is written.
    STORE = 6,
    // To an entry: the task that the packet carries is written.
    PLACE = 7,
    // To an entry: it is read.
    TAKE = 8,
    // Published: the operations of the same names.
    BACK = 9,
    OWE_NO_OP = 10,
    REPAIR_ADD = 11,
    REPAIR_RETRIEVE = 12,
    // Safe: a search during which the queue ran empty: once more, to place its task at the tail.
    AGAIN = 13,
    // A RETRIEVE of another epoch, or of a slot that is not registered: its executor is told so.
    RESET = 14,
    // For the controller.
    CONTROL = 15
}
