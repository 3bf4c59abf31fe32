//! Bugs of the tasks program in code that the simulated campaign does not reach: a named test must fail with each. See
//! `docs/internals/mutants.md`. Numbers in the fifties are in the wire codec, in the sixties and seventies in the kernel hosts (XDP, TC),
//! in the eighties in the sockets.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suite {
    Wire,
    /// Frames through the kernel hosts; needs root, and a build with the kernel engine.
    Frames,
    /// Unit tests of the sockets and the switch's thread.
    Host,
    /// A switch that listens on several addresses.
    Addresses,
}

impl Suite {
    pub(super) const ALL: [Self; 4] = [Self::Wire, Self::Frames, Self::Host, Self::Addresses];

    /// Cargo's names of the package and the test target.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Wire => ("midflight-wire", "wire"),
            Self::Frames => ("midflight-spec", "frames"),
            Self::Host => ("midflight-host", "midflight_host"),
            Self::Addresses => ("midflight-host", "addresses"),
        }
    }
}

/// A planted bug, and the test that must fail with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beyond {
    /// Its number on the command line.
    pub(super) number: u32,
    /// At most three words.
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) suite: Suite,
    pub(super) test: &'static str,
}

const fn beyond(number: u32, name: &'static str, place: &'static str, suite: Suite, test: &'static str) -> Beyond {
    Beyond { number, name, place, suite, test }
}

#[rustfmt::skip]
pub(super) const BEYOND: &[Beyond] = {
    use Suite::{Addresses, Frames, Host, Wire};
    const BUILDER: &str = "crates/wire/src/tasks/builder.rs";
    const PARSE: &str = "crates/wire/src/parse.rs";
    const TASKS_PARSE: &str = "crates/wire/src/tasks/parse.rs";
    const LAYOUT: &str = "crates/wire/src/layout.rs";
    const FRAME: &str = "dataplane/xdp/parse.h";
    const COMPOSE: &str = "dataplane/xdp/compose.h";
    const XDP: &str = "dataplane/xdp/xdp.h";
    const WORDS: &str = "dataplane/xdp/words.h";
    const HOPS: &str = "dataplane/xdp/next_hops.h";
    const HANDOVER: &str = "dataplane/xdp/handover.h";
    const TC: &str = "dataplane/xdp/tc.h";
    const SOCKET: &str = "crates/host/src/socket/mod.rs";
    const THREAD: &str = "crates/host/src/switch/thread.rs";
    const LIMIT: &str = "crates/host/src/socket/reply_limit.rs";
    &[
        beyond(50, "half-of-keys-ignored", PARSE, Wire, "properties::t11_each_header_field_is_checked_by_name"),
        beyond(51, "three-bytes-behind", PARSE, Wire, "properties::t11_a_packet_with_more_behind_it_is_rejected"),
        beyond(52, "padding-of-four", TASKS_PARSE, Wire, "properties::a_packet_read_and_written_again_is_the_same"),
        beyond(53, "record-unforeseen", BUILDER, Wire, "properties::t15_a_complete_is_never_longer_than_a_packet"),
        beyond(54, "long-reference", TASKS_PARSE, Wire, "properties::t11_a_result_that_exceeds_its_bound_is_rejected"),
        beyond(55, "empty-release", TASKS_PARSE, Wire, "properties::t11_a_count_outside_its_bounds_is_rejected"),
        beyond(56, "compatible-not-mapped", LAYOUT, Wire, "golden::golden_packets_are_written_and_read"),
        beyond(60, "first-fragment-taken", FRAME, Frames, "left_alone::fragments_of_ipv4"),
        beyond(61, "own-address-as-sender", FRAME, Frames, "left_alone::t13_what_claims_to_come_from_another_address_of_the_switch"),
        beyond(62, "cookie-turned-round", XDP, Frames, "answers::t13_a_cookie_is_given_without_a_record"),
        beyond(63, "checksum-of-zero", COMPOSE, Frames, "answers::a_checksum_of_zero_is_written_as_ones"),
        beyond(64, "odd-byte-unsummed", WORDS, Frames, "answers::every_length_arrives_whole"),
        beyond(65, "anybody-teaches-hops", HOPS, Frames, "next_hops::t13_a_forger_teaches_no_next_hop"),
        beyond(66, "old-hop-kept", HOPS, Frames, "tc::where_no_next_hop_was_learned_the_kernel_is_asked"),
        beyond(70, "clone-goes-back", TC, Frames, "tc::t6_a_task_goes_to_the_executor_where_its_retrieve_came_from"),
        beyond(71, "other-tags-the-same", COMPOSE, Frames, "tc::tags_are_kept_where_both_have_the_same_and_else_user_space_sends"),
        beyond(72, "merged-taken", TC, Frames, "tc::what_is_for_another_machine_or_was_merged_is_left_alone"),
        beyond(73, "others-packets-taken", TC, Frames, "tc::what_is_for_another_machine_or_was_merged_is_left_alone"),
        beyond(74, "own-address-untold", TC, Frames, "tc::where_the_families_differ_user_space_sends"),
        beyond(76, "end-not-handed-over", HANDOVER, Frames, "tc::t15_the_longest_answer_passes_a_link_of_1280_bytes"),
        beyond(80, "segment-grows", SOCKET, Host, "socket::tests::runs_of_equal_datagrams_leave_by_gso_and_arrive_as_they_were"),
        beyond(81, "short-one-inside", SOCKET, Host, "socket::tests::runs_of_equal_datagrams_leave_by_gso_and_arrive_as_they_were"),
        beyond(82, "merged-not-split", SOCKET, Host, "socket::tests::runs_of_equal_datagrams_leave_by_gso_and_arrive_as_they_were"),
        beyond(83, "any-own-address", SOCKET, Host, "socket::tests::answers_leave_from_the_address_that_was_asked"),
        beyond(84, "anybody-teaches-addresses", THREAD, Addresses, "t13_tasks_come_from_the_address_that_the_executor_itself_asked_last"),
        beyond(85, "gso-given-up", SOCKET, Host, "socket::tests::t16_what_cannot_be_sent_does_not_end_gso"),
        beyond(86, "mapped-sender", SOCKET, Host, "socket::tests::an_ipv6_wildcard_talks_to_ipv4_and_shows_it_as_ipv4"),
        beyond(87, "own-addresses-mixed", SOCKET, Host, "socket::tests::t13_a_run_leaves_from_one_address_only"),
        beyond(88, "merged-counted-once", SOCKET, Host, "socket::tests::runs_of_equal_datagrams_leave_by_gso_and_arrive_as_they_were"),
        beyond(89, "last-quarter-for-anybody", LIMIT, Host, "socket::reply_limit::tests::an_empty_buffer_answers_everybody_and_a_full_one_nobody"),
    ]
};

/// Bugs of a program; so far only of tasks.
pub(super) fn beyond_the_campaign(program: &str) -> &'static [Beyond] {
    if program == "tasks" { BEYOND } else { &[] }
}
