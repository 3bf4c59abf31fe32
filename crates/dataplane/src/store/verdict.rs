//! Drop reasons of the store program.

crate::verdicts! {
    /// A drop reason of `verdict.h` or `store_verdict.h`.
    Verdict {
        BadKey Refused "bad_key" "a key that is longer than a key may be, or where no key belongs",
        BadStatus Refused "bad_status" "a reply with a status that does not exist",
        NoClient Refused "no_client" "a READ_REPLY that does not say where it goes",
        UnknownSet Refused "unknown_set" "a replica set that this switch does not serve; a request is answered so",
        Inactive Refused "inactive" "a request for a set that has no session now; answered so",
        ForeignReplica Refused "foreign_replica" "not from the address of a replica of the set",
        ForeignEpoch Refused "foreign_epoch" "a reply without the secret of the set's incarnation: forged, or from before it",
        ForeignIncarnation Refused "foreign_incarnation" "meant for another incarnation of the set; answered by STATE",
        BadKgroups Refused "bad_kgroups" "a HEARTBEAT with another number of key groups than the set has here; answered by STATE",
        OldSession Refused "old_session" "a HEARTBEAT of a session that has ended, or is below the present one; answered by STATE",
        BadSession Refused "bad_session" "a HEARTBEAT whose leader has no address, or that contradicts its session; answered by STATE",
        OldEcho Refused "old_echo" "a HEARTBEAT whose echo is too old for a lease, or not of this switch; answered by STATE",
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn verdicts_are_those_of_the_headers() {
        let header = include_str!("../../../../dataplane/include/midflight/store_verdict.h");
        crate::verdict::assert_listed(header, Verdict::text);
    }
}
