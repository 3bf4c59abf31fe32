//! What the switch says of a datagram, or of one record in it: `verdict.h`, name for name.

macro_rules! verdicts {
    ($($variant:ident $name:literal $text:literal,)*) => {
        /// One of the reasons of `verdict.h`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Verdict { $(#[doc = $text] $variant,)* }

        impl Verdict {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Its name in metrics and transcripts.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it means, for people.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

verdicts! {
    Ok "ok" "taken",
    Truncated "truncated" "shorter than its header and its records",
    Trailing "trailing" "longer than its header and its records",
    BadMagic "bad_magic" "not a Midflight packet",
    BadVersion "bad_version" "a version of the format that this switch does not speak; answered by VERSION",
    UnknownKey "unknown_key" "signed with a key: this switch has none",
    UnknownOperation "unknown_operation" "an operation that does not exist",
    NotForSwitch "not_for_switch" "an operation that is never sent to a switch",
    BadCount "bad_count" "no records, or more than the operation may carry",
    BadPriority "bad_priority" "a task's priority is 0 or below the lowest level of this switch",
    BadArgument "bad_argument" "a task's argument length is neither 0 to 16 nor by reference",
    NoCookie "no_cookie" "without the cookie of its identity and address; answered by COOKIE",
    ForeignEpoch "foreign_epoch" "sent to a switch that ran here before; answered by RESET",
    ForeignSlot "foreign_slot" "a slot that is not registered, or not any more; answered by RESET",
    SpoofedSlot "spoofed_slot" "a slot that is registered at another address; answered by RESET",
    Replayed "replayed" "a slot named by a packet that is not later than the last one that named it",
    StaleWait "stale_wait" "a wait older than the slot's present one",
    RepeatedWait "repeated_wait" "a wait repeated, kept parked or assigned the same task again",
    StaleRegister "stale_register" "a registration older than the slot's present one",
    RepeatedSubmit "repeated_submit" "a SUBMIT or CANCEL repeated within the window, answered as before",
    TooOld "too_old" "a SUBMIT or CANCEL below the client's window",
    Full "full" "a task that found the queue full and was returned to its client",
    ClientsFull "clients_full" "a SUBMIT of a new client that found no room for one",
    SlotsFull "slots_full" "a slot that found no room",
    QueueShare "queue_share" "a task of an address that holds its share of the queue, returned to its client",
    ClientsShare "clients_share" "a SUBMIT of a new client of an address that holds its share of the clients",
    SlotsShare "slots_share" "a slot of an address that holds its share of the slots",
    NotQueued "not_queued" "a task to cancel that is not queued (any more)",
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    /// Rule 6 of the house: one list. Reads `verdict.h` and compares names, texts and order.
    #[test]
    fn verdicts_are_those_of_verdict_h() {
        let header = include_str!("../../../dataplane/include/midflight/verdict.h");
        let of_c: Vec<(String, String)> = header
            .lines()
            .filter_map(|line| {
                let (name, rest) = line.trim().strip_prefix("X(")?.split_once(", \"")?;
                Some((name.to_lowercase(), rest.split_once('"')?.0.to_owned()))
            })
            .collect();
        let of_rust: Vec<_> = Verdict::ALL.iter().map(|v| (v.name().to_owned(), v.text().to_owned())).collect();
        assert_eq!(of_c, of_rust);
    }
}
