//! The store program: sends each read to an up-to-date replica.

mod order;
mod stats;
pub(crate) mod survey;
mod verdict;

pub use order::{NewSet, Outcome, Policy, ReplyCheck, SetOrder, Wish};
pub use stats::{OPERATIONS, SETS_MAX, SetStats, Stats};
pub use survey::{Survey, SurveyedReplica, SurveyedSet};
pub use verdict::Verdict;

use crate::Native;
use crate::program::{Bound, Clock, ConfigError, Program};
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_wire::VERSION_OPERATION;
use midflight_wire::store::{Operation, Request, Status};
use zerocopy::FromBytes;

/// Longest lease T for a set that gives none: `MF_LEASE_MAX_NS`.
pub const LEASE_MAX_NS: Nanos = 1 << 42;

/// The store program.
#[derive(Clone, Copy, Debug)]
pub struct StoreProgram;

/// A switch's replica sets in this process, the C core. `docs/internals/store-switch.md` explains its structures.
pub type Store = Native<StoreProgram>;

/// Bounds and times of a switch of replica sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
#[repr(C)]
pub struct StoreConfig {
    /// Replica sets: 1 to 64. Default 32.
    pub sets: u32,
    /// At most 2^this key groups per set: 0 to 20. Default 12.
    pub kgroup_bits: u32,
    /// How long a heartbeat's echo keeps a session alive, if the set gives no time: up to an hour. Default 150 ms.
    #[cfg_attr(feature = "serde", serde(rename = "lease", deserialize_with = "crate::duration::nanos"))]
    pub lease_ns: Nanos,
    /// Length of a cookie interval; a cookie is valid in its own interval and the next. Default 5 s.
    #[cfg_attr(feature = "serde", serde(rename = "cookie", deserialize_with = "crate::duration::nanos"))]
    pub cookie_ns: Nanos,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { sets: 32, kgroup_bits: 12, lease_ns: 150 * MS, cookie_ns: 5 * SECOND }
    }
}

impl Program for StoreProgram {
    const NAME: &'static str = "store";
    const CLOCK: Clock = Clock::CountsSuspension;
    const OPERATIONS: &'static [&'static str] = &stats::OPERATION_NAMES;

    type Config = StoreConfig;
    type Verdict = Verdict;
    type Stats = Stats;
    type Order = SetOrder;
    type Survey = Survey;

    fn violated(_config: &StoreConfig) -> ConfigError {
        ConfigError(
            "sets must be 1 to 64, kgroup_bits 0 to 20, lease longer than 0 and at most an hour, cookie longer than 0"
                .into(),
        )
    }

    fn bounds(config: &StoreConfig) -> Vec<(&'static str, Bound)> {
        vec![
            ("sets", Bound::Count(config.sets)),
            ("kgroup_bits", Bound::Count(config.kgroup_bits)),
            ("lease", Bound::Time(config.lease_ns)),
            ("cookie", Bound::Time(config.cookie_ns)),
        ]
    }

    fn ticks(_config: &StoreConfig) -> u32 {
        1
    }

    fn packets(stats: &Stats) -> &[u64] {
        &stats.packets
    }

    fn verdicts(stats: &Stats) -> &[u64] {
        &stats.reasons
    }

    /// VERSION, and the answer to a request without a cookie. STATE goes only to replicas, all else only to holders of a cookie.
    fn is_for_anybody(answer: &[u8]) -> bool {
        let Ok((request, _)) = Request::ref_from_prefix(answer) else { return true };
        let operation = request.header.operation;
        let is_reply = [Operation::ReadReply as u8, Operation::WriteReply as u8].contains(&operation);
        let says_who_asks_nothing = [Status::Cookie as u8, Status::UnknownSet as u8].contains(&request.status);
        operation == VERSION_OPERATION || is_reply && says_who_asks_nothing
    }
}

crate::soft_program!(
    StoreProgram,
    "store",
    "MIDFLIGHT_LAYOUT_STORE",
    mf_store_size,
    mf_store_init,
    mf_store_packet,
    mf_store_tick,
    mf_store_order,
    mf_store_owes_more,
    mf_store_stats,
    mf_store_check,
    survey: survey::go_on
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Engine, SoftProgram};
    use midflight_wire::Version;
    use midflight_wire::store::{Heartbeat, KGROUP_BITS_MAX, Replica, State};
    use std::net::SocketAddr;
    use zerocopy::IntoBytes;

    unsafe extern "C" {
        fn mf_store_layout(layout: *mut u64);
    }

    #[test]
    fn structures_and_bounds_are_those_of_store_h() {
        let mut of_c = [0; 12];
        // SAFETY: it writes twelve numbers.
        unsafe { mf_store_layout(of_c.as_mut_ptr()) };
        let sizes =
            [size_of::<StoreConfig>(), size_of::<Stats>(), size_of::<SetStats>(), size_of::<SetOrder>(), OPERATIONS];
        let bounds = [SETS_MAX, LEASE_MAX_NS as usize, 4096, 232, usize::from(KGROUP_BITS_MAX)];
        let of_rust = sizes.into_iter().chain(bounds).chain(survey::LAYOUT).map(|n| n as u64);
        assert_eq!(of_c.to_vec(), of_rust.collect::<Vec<_>>());
    }

    fn config() -> StoreConfig {
        StoreConfig { sets: 2, kgroup_bits: 14, ..StoreConfig::default() }
    }

    fn new_set(number: u16) -> NewSet {
        NewSet {
            number,
            incarnation: 7,
            lease_ns: 0,
            kgroup_bits: 14,
            reply_check: ReplyCheck::Strict,
            policy: Policy::Random,
            replicas: vec![([10, 0, 0, 1], 7000).into()],
        }
    }

    /// Returns the number of calls that an order takes, and its outcome.
    fn ask(store: &mut Store, mut order: SetOrder) -> (u32, Outcome) {
        let mut calls = 1;
        while !store.order(&mut order) {
            calls += 1;
        }
        (calls, order.outcome())
    }

    #[test]
    fn an_order_says_what_it_was_made_of() {
        assert_eq!(SetOrder::add(&new_set(3)).wish(), Some(Wish::Add(new_set(3))));
        assert_eq!(SetOrder::change(&new_set(3)).wish(), Some(Wish::Change(new_set(3))));
        assert_eq!((SetOrder::remove(3).wish(), SetOrder::remove(3).number()), (Some(Wish::Remove(3)), 3));
    }

    /// R7: a set that does not fit is refused, and no call exceeds a bounded piece of work.
    #[test]
    fn r7_sets_are_added_in_steps_and_removed() {
        let mut store = Store::new(&config(), 1, 1).expect("within its bounds");
        assert_eq!(ask(&mut store, SetOrder::add(&new_set(1))), (4, Outcome::Done), "16,384 key groups");
        assert_eq!(ask(&mut store, SetOrder::add(&new_set(1))), (1, Outcome::Exists));
        assert_eq!(ask(&mut store, SetOrder::add(&NewSet { kgroup_bits: 0, ..new_set(2) })), (1, Outcome::Done));
        assert_eq!(ask(&mut store, SetOrder::add(&new_set(3))), (1, Outcome::NoRoom));
        assert_eq!(ask(&mut store, SetOrder::remove(3)), (1, Outcome::Unknown));
        assert_eq!(store.stats().present().map(|set| set.set).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(ask(&mut store, SetOrder::remove(1)), (1, Outcome::Done));
        assert_eq!(ask(&mut store, SetOrder::add(&new_set(3))), (4, Outcome::Done));
        assert_eq!(Engine::check(&store), Ok(()));
    }

    #[test]
    fn r7_an_order_beyond_a_bound_is_refused() {
        let mut store = Store::new(&config(), 1, 1).expect("within its bounds");
        for bad in [
            NewSet { incarnation: 0, ..new_set(1) },
            NewSet { lease_ns: LEASE_MAX_NS + 1, ..new_set(1) },
            NewSet { kgroup_bits: 15, ..new_set(1) },
        ] {
            assert_eq!(ask(&mut store, SetOrder::add(&bad)), (1, Outcome::Bad), "{bad:?}");
        }
    }

    /// Two interleaved orders want the same place: the later one takes another, and clears that from its start.
    #[test]
    fn orders_that_take_turns_clear_different_places() {
        let mut store = Store::new(&config(), 1, 1).expect("within its bounds");
        let (mut one, mut two) = (SetOrder::add(&new_set(1)), SetOrder::add(&new_set(2)));
        assert!(!store.order(&mut two) && !store.order(&mut two));
        while !store.order(&mut one) {}
        assert_eq!(ask(&mut store, two), (4, Outcome::Done));
        assert_eq!(Engine::check(&store), Ok(()));
    }

    #[test]
    fn a_configuration_beyond_a_bound_is_refused() {
        let good = StoreConfig::default();
        let bytes = |sets| StoreProgram::state_bytes(&StoreConfig { sets, ..good });
        assert!(bytes(64) >= bytes(63) + 4096 * 32, "32 bytes for each key group");
        for bad in [
            StoreConfig { sets: 0, ..good },
            StoreConfig { sets: 65, ..good },
            StoreConfig { kgroup_bits: 21, ..good },
            StoreConfig { lease_ns: 0, ..good },
            StoreConfig { lease_ns: LEASE_MAX_NS + 1, ..good },
            StoreConfig { cookie_ns: 0, ..good },
        ] {
            assert!(Store::new(&bad, 1, 1).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_survey_has_the_replicas_that_the_operator_names_and_then_those_of_the_session() {
        let mut store = Store::new(&config(), 1, 1).expect("within its bounds");
        assert_eq!(ask(&mut store, SetOrder::add(&new_set(3))), (4, Outcome::Done));
        let survey = surveyed(&store);
        let [set] = &survey.sets[..] else { panic!("{survey:?}") };
        assert_eq!((set.number, set.sid, set.policy(), set.reply_check()), (3, 0, Policy::Random, ReplyCheck::Strict));
        let named = SocketAddr::from(([10, 0, 0, 1], 7000));
        assert_eq!((set.replicas[0].address(), set.replicas[1].address()), (Some(named), None));

        let follower = SocketAddr::from(([10, 0, 0, 2], 7000));
        let now = SECOND;
        let mut beat = Heartbeat {
            incarnation: 7.into(),
            sid: (1 << 32).into(),
            echo: now.into(),
            set: 3.into(),
            kgroup_bits: 14,
            ..Heartbeat::new(0, 1)
        };
        beat.header.count = 2;
        let replica = |address: SocketAddr, weight, matched: u64| Replica {
            address: address.into(),
            weight,
            reserved: [0; 3],
            matched: matched.into(),
        };
        let replicas = [replica(named, 0, 9), replica(follower, 100, 7)];
        let mut beat = [beat.as_bytes(), replicas.as_bytes()].concat();
        assert_eq!(Engine::packet(&mut store, now, named, &mut beat, &mut crate::Out::new()), Ok(Verdict::Ok));
        let set = surveyed(&store).sets[0];
        assert_eq!((set.sid, set.leader, set.lease_ends_ns - set.lease_ns), (1 << 32, 0, now));
        let of = |slot: usize| {
            let replica = &set.replicas[slot];
            (replica.address(), replica.weight, replica.matched, replica.heard_ns)
        };
        assert_eq!(of(0), (Some(named), 0, 9, now), "the leader is heard by its heartbeats");
        assert_eq!(of(1), (Some(follower), 1, 7, 0), "the policy makes all weights the same");
    }

    fn surveyed(store: &Store) -> Survey {
        let mut survey = Survey::default();
        while !Engine::survey(store, &mut survey) {}
        survey
    }

    /// R7: under a flood of forged requests a replica still receives STATE.
    #[test]
    fn r7_only_what_needs_no_cookie_is_for_anybody() {
        let reply = |operation, status: Status| {
            let mut request = Request::new(operation);
            request.status = status as u8;
            StoreProgram::is_for_anybody(request.as_bytes())
        };
        assert!(reply(Operation::ReadReply, Status::Cookie) && reply(Operation::WriteReply, Status::UnknownSet));
        assert!(!reply(Operation::ReadReply, Status::Inactive) && !reply(Operation::WriteReply, Status::Inactive));
        assert!(!StoreProgram::is_for_anybody(State::new(1, 1).as_bytes()));
        assert!(StoreProgram::is_for_anybody(Version::OURS.as_bytes()));
    }
}
