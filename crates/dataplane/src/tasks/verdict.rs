//! Drop reasons of the tasks program.

crate::verdicts! {
    /// A drop reason of `verdict.h` or `tasks_verdict.h`.
    Verdict {
        BadPriority Refused "bad_priority" "a task's priority is 0 or below the lowest level of this switch",
        BadArgument Refused "bad_argument" "a task's argument has a length that its form does not allow",
        ForeignEpoch Refused "foreign_epoch" "sent to a switch that ran here before; answered by RESET",
        ForeignSlot Partly "foreign_slot" "a slot that is not registered, or not any more; answered by RESET",
        SpoofedSlot Partly "spoofed_slot" "a slot that is registered at another address; answered by RESET",
        Replayed Partly "replayed" "a slot named by a packet that is not later than the last one that named it",
        StaleWait Partly "stale_wait" "a wait older than the slot's present one",
        RepeatedWait Partly "repeated_wait" "a wait repeated, kept parked or assigned the same task again",
        StaleRegister Partly "stale_register" "a registration older than the slot's present one",
        RepeatedSubmit Partly "repeated_submit" "a SUBMIT or CANCEL repeated within the window, answered as before",
        TooOld Partly "too_old" "a SUBMIT or CANCEL below the client's window",
        Full Partly "full" "a task that found the queue full and was returned to its client",
        ClientsFull Partly "clients_full" "a SUBMIT of a new client that found no room for one",
        SlotsFull Partly "slots_full" "a slot that found no room",
        PlacesFull Partly "places_full" "a slot whose place found no room, and which is registered without it",
        NoPlace Partly "no_place" "a task that prefers a place without slots, and was accepted without preference",
        QueueShare Partly "queue_share" "a task of an address that holds its share of the queue, returned to its client",
        ArgumentsFull Partly "arguments_full" "a task whose argument found no room, returned to its client",
        ArgumentsShare Partly "arguments_share" "a task of an address whose arguments hold their share, returned to its client",
        ClientsShare Partly "clients_share" "a SUBMIT of a new client of an address that holds its share of the clients",
        SlotsShare Partly "slots_share" "a slot of an address that holds its share of the slots",
        NotQueued Partly "not_queued" "a task to cancel that the switch does not have (any more)",
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn bad_version_has_its_number() {
        assert_eq!(Verdict::BadVersion as usize, crate::BAD_VERSION);
    }

    #[test]
    fn verdicts_are_those_of_the_headers() {
        let header = include_str!("../../../../dataplane/include/midflight/tasks_verdict.h");
        crate::verdict::assert_listed(header, Verdict::text);
    }
}
