//! Drop reasons of the cache program.

crate::verdicts! {
    /// A drop reason of `verdict.h` or `cache_verdict.h`.
    Verdict {
        UnknownSender Refused "unknown_sender" "from an address that is no host of this rack, no server and no operator",
        UnknownClient Refused "unknown_client" "an answer for a client that is in no rack that this operator knows",
        UnknownServer Refused "unknown_server" "a request whose backup is no server, when it was needed",
        OtherServer Refused "other_server" "an answer of a server that names another one as its sender",
        LongStatus Refused "long_status" "an answer with a longer status than a server may send",
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn verdicts_are_those_of_the_headers() {
        let header = include_str!("../../../../dataplane/include/midflight/cache_verdict.h");
        crate::verdict::assert_listed(header, Verdict::text);
    }
}
