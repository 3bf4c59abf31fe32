// What a packet is doing. One enum for both programs, as the controls that they share read it.
enum bit<8> Role {
    NONE = 0,
    // A task is to be queued. In the safe program the limit is the lagging copy of the credit.
    SUBMIT = 1,
    // Safe: a task is to be queued; the limit is a value of the credit that the packet has read, or a newer one.
    REST = 2,
    // Safe: a task that the switch cannot queue, whatever room there is.
    REFUSE = 3,
    // An executor wants a task; in the safe program, behind the counts: there is none.
    RETRIEVE = 4,
    // A search within the queue. To an entry: its task and the packet's are exchanged.
    SWAP = 5,
    // To an entry: the SUBMIT's task is written.
    STORE = 6,
    // To an entry: the task that the packet carries is written.
    PLACE = 7,
    // To an entry: it is read.
    TAKE = 8,
    // Published: as Op.BACK and those behind it.
    BACK = 9,
    OWE_NO_OP = 10,
    REPAIR_ADD = 11,
    REPAIR_RETRIEVE = 12,
    // Safe: a search during which the queue ran empty.
    AGAIN = 13,
    // A RETRIEVE of a slot that is void.
    RESET = 14
}
