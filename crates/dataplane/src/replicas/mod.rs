//! The replicas program: the rules of an operator, which sends requests to whoever selects a replica for them.

mod rule;
mod stats;
mod verdict;

pub use rule::{Outcome, Rule, RuleOrder};
pub use stats::{KINDS, Stats, TIERS_MAX};
pub use verdict::Verdict;

use crate::Native;
use crate::program::{Bound, Clock, ConfigError, Program};
use midflight_endpoint::{Nanos, SECOND};
use midflight_wire::replicas::{Kind, Netrs};
use zerocopy::FromBytes;

/// `MF_PLACES_MAX`: hosts, servers and operators that an operator may know.
pub const PLACES_MAX: u32 = 1 << 20;
/// `MF_RACKS_MAX`, `MF_GROUPS_MAX` and `MF_RSNODES_MAX`.
pub const NUMBERS_MAX: u32 = 65_534;

/// The replicas program.
#[derive(Clone, Copy, Debug)]
pub struct ReplicasProgram;

/// An operator in this process, the C core. `docs/internals/replicas-operator.md` explains its tables.
pub type Replicas = Native<ReplicasProgram>;

/// Bounds of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
#[repr(C)]
pub struct ReplicasConfig {
    /// Hosts, servers and operators that it may know: 1 to 1,048,576. Default 4,096.
    pub places: u32,
    /// Racks: 1 to 65,534. Default 256.
    pub racks: u32,
    /// Traffic groups: 1 to 65,534. Default 1,024.
    pub groups: u32,
    /// RSNode ids are 1 to this, at most 65,534. Default 4,096.
    pub rsnodes: u32,
    /// At each tier, from the topmost (whose mask is 0): the bits that the markers of two racks have in common if packets between them
    /// pass no higher tier. Default: three tiers, pods in the upper half of a marker.
    pub masks: [u32; TIERS_MAX],
    /// A cookie is valid in the interval of this length in which it was made, and in the next. Default 5 s.
    #[cfg_attr(feature = "serde", serde(rename = "cookie", deserialize_with = "crate::duration::nanos"))]
    pub cookie_ns: Nanos,
}

impl Default for ReplicasConfig {
    fn default() -> Self {
        Self {
            places: 4_096,
            racks: 256,
            groups: 1_024,
            rsnodes: 4_096,
            masks: [0, 0xffff_0000, 0xffff_ffff, 0],
            cookie_ns: 5 * SECOND,
        }
    }
}

impl Program for ReplicasProgram {
    const NAME: &'static str = "replicas";
    const CLOCK: Clock = Clock::Monotonic;
    const OPERATIONS: &'static [&'static str] = &stats::KIND_NAMES;

    type Config = ReplicasConfig;
    type Verdict = Verdict;
    type Stats = Stats;
    type Order = RuleOrder;

    fn violated(_config: &ReplicasConfig) -> ConfigError {
        ConfigError(
            "places must be 1 to 1,048,576, racks, groups and rsnodes 1 to 65,534, the first mask 0, cookie longer than 0"
                .into(),
        )
    }

    fn bounds(config: &ReplicasConfig) -> Vec<(&'static str, Bound)> {
        vec![
            ("places", Bound::Count(config.places)),
            ("racks", Bound::Count(config.racks)),
            ("groups", Bound::Count(config.groups)),
            ("rsnodes", Bound::Count(config.rsnodes)),
            ("cookie", Bound::Time(config.cookie_ns)),
        ]
    }

    fn ticks(_config: &ReplicasConfig) -> u32 {
        1
    }

    fn packets(stats: &Stats) -> &[u64] {
        &stats.packets
    }

    fn verdicts(stats: &Stats) -> &[u64] {
        &stats.reasons
    }

    /// VERSION, and COOKIE.
    fn is_for_anybody(answer: &[u8]) -> bool {
        let Ok((start, _)) = Netrs::ref_from_prefix(answer) else { return true };
        [Kind::Version as u8, Kind::Cookie as u8].contains(&start.kind)
    }
}

crate::soft_program!(
    ReplicasProgram,
    "replicas",
    "MIDFLIGHT_LAYOUT_REPLICAS",
    mf_replicas_size,
    mf_replicas_init,
    mf_replicas_packet,
    mf_replicas_tick,
    mf_replicas_order,
    mf_replicas_owes_more,
    mf_replicas_stats,
    mf_replicas_check
);

unsafe extern "C" {
    fn mf_replicas_counts(state: *const u8, group: u32, counts: *mut u64);
}

impl Replicas {
    /// Sets a rule.
    pub fn set(&mut self, rule: Rule) -> Outcome {
        let mut order = RuleOrder::from(rule);
        self.order(&mut order);
        order.outcome()
    }

    /// The monitor's counts of a traffic group: answers by the highest tier that they passed, 0 the topmost.
    #[must_use]
    pub fn counts(&self, group: u16) -> [u64; TIERS_MAX] {
        let mut counts = [0; TIERS_MAX];
        // SAFETY: the state was initialised, and `counts` has room for all tiers.
        unsafe { mf_replicas_counts(self.state(), group.into(), counts.as_mut_ptr()) };
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Engine, SoftProgram};
    use std::net::SocketAddr;

    unsafe extern "C" {
        fn mf_replicas_layout(layout: *mut u64);
    }

    #[test]
    fn structures_and_bounds_are_those_of_replicas_h() {
        let mut of_c = [0; 10];
        // SAFETY: it writes ten numbers.
        unsafe { mf_replicas_layout(of_c.as_mut_ptr()) };
        let sizes = [size_of::<ReplicasConfig>(), size_of::<Stats>(), size_of::<RuleOrder>()];
        let numbers = NUMBERS_MAX as usize;
        let bounds = [KINDS, TIERS_MAX, PLACES_MAX as usize, numbers, numbers, numbers, rule::RULES];
        let of_rust = sizes.into_iter().chain(bounds).map(|n| n as u64);
        assert_eq!(of_c.to_vec(), of_rust.collect::<Vec<_>>());
    }

    fn operator() -> Replicas {
        let config = ReplicasConfig { places: 3, racks: 2, groups: 2, rsnodes: 2, ..ReplicasConfig::default() };
        Replicas::new(&config, 1, 1).expect("within its bounds")
    }

    fn host(number: u8) -> Rule {
        Rule::Host { ip: [10, 0, 0, number].into(), rack: 1, group: Some(1) }
    }

    #[test]
    fn an_order_says_what_it_was_made_of() {
        let address = SocketAddr::from(([10, 0, 0, 1], 7000));
        for rule in [
            Rule::Own { rack: None, selector: Some(address) },
            Rule::Own { rack: Some(0), selector: None },
            Rule::Rack { rack: 1, operator: Some(address), marker: 7 },
            Rule::Rack { rack: 1, operator: None, marker: 0 },
            host(1),
            Rule::Host { ip: [10, 0, 0, 1].into(), rack: 1, group: None },
            Rule::Server { address, rack: 1 },
            Rule::Operator(address),
            Rule::Gone(address),
            Rule::RsNode { id: 2, operator: None },
            Rule::Serve(2),
            Rule::Group { group: 1, rsnode: Some(1) },
            Rule::Group { group: 1, rsnode: None },
        ] {
            assert_eq!(RuleOrder::from(rule).rule(), Some(rule));
        }
    }

    /// N8: a rule that does not fit changes nothing.
    #[test]
    fn n8_rules_beyond_a_bound_are_refused() {
        let mut operator = operator();
        let address = SocketAddr::from(([10, 0, 0, 1], 7000));
        for bad in [
            Rule::Own { rack: Some(2), selector: None },
            Rule::Rack { rack: 2, operator: Some(address), marker: 0 },
            Rule::Host { ip: [10, 0, 0, 1].into(), rack: 2, group: None },
            Rule::Host { ip: [10, 0, 0, 1].into(), rack: 1, group: Some(2) },
            Rule::Server { address, rack: 2 },
            Rule::Server { address: ([10, 0, 0, 1], 0).into(), rack: 1 },
            Rule::Operator(([10, 0, 0, 1], 0).into()),
            Rule::RsNode { id: 0, operator: Some(address) },
            Rule::RsNode { id: 3, operator: Some(address) },
            Rule::Serve(3),
            Rule::Group { group: 2, rsnode: None },
            Rule::Group { group: 1, rsnode: Some(3) },
        ] {
            assert_eq!(operator.set(bad), Outcome::Bad, "{bad:?}");
        }
        assert_eq!(Engine::check(&operator), Ok(()));
    }

    #[test]
    fn places_are_bounded_and_come_free_again() {
        let mut operator = operator();
        assert!((1..=3).all(|number| operator.set(host(number)) == Outcome::Done));
        assert_eq!(operator.set(host(1)), Outcome::Done, "it is there");
        assert_eq!(operator.set(host(4)), Outcome::NoRoom);
        assert_eq!(operator.set(Rule::Gone(([10, 0, 0, 2], 0).into())), Outcome::Done);
        assert_eq!((operator.set(host(4)), operator.set(host(2))), (Outcome::Done, Outcome::NoRoom));
        assert_eq!(operator.set(Rule::Gone(([10, 0, 0, 9], 0).into())), Outcome::Done, "it is not there");
        assert_eq!(Engine::check(&operator), Ok(()));
    }

    /// Many come and go: what has gone never hides what is there.
    #[test]
    fn places_are_found_after_many_have_come_and_gone() {
        let config = ReplicasConfig { places: 200, ..ReplicasConfig::default() };
        let mut operator = Replicas::new(&config, 1, 7).expect("within its bounds");
        let host = |number: u32| Rule::Host { ip: number.to_be_bytes().into(), rack: 1, group: None };
        for number in 0..20_000_u32 {
            if number >= 200 {
                let gone = SocketAddr::new((number - 200).to_be_bytes().into(), 0);
                assert_eq!(operator.set(Rule::Gone(gone)), Outcome::Done);
            }
            assert_eq!(operator.set(host(number)), Outcome::Done, "{number}");
        }
        assert_eq!(Engine::check(&operator), Ok(()));
    }

    #[test]
    fn counts_are_read_by_an_order_too() {
        let mut operator = operator();
        let read = |operator: &mut Replicas, group| {
            let mut order = RuleOrder::counts_of(group);
            assert!(operator.order(&mut order));
            (order.outcome(), order.counts())
        };
        assert_eq!(read(&mut operator, 1), (Outcome::Done, [0; TIERS_MAX]));
        assert_eq!(read(&mut operator, 2), (Outcome::Bad, [0; TIERS_MAX]));
        assert_eq!(RuleOrder::counts_of(1).rule(), None, "it sets nothing");
    }

    #[test]
    fn a_configuration_beyond_a_bound_is_refused() {
        let good = ReplicasConfig::default();
        assert!(ReplicasProgram::state_bytes(&good) > 0);
        for bad in [
            ReplicasConfig { places: 0, ..good },
            ReplicasConfig { places: PLACES_MAX + 1, ..good },
            ReplicasConfig { racks: 0, ..good },
            ReplicasConfig { racks: NUMBERS_MAX + 1, ..good },
            ReplicasConfig { groups: 0, ..good },
            ReplicasConfig { groups: NUMBERS_MAX + 1, ..good },
            ReplicasConfig { rsnodes: 0, ..good },
            ReplicasConfig { rsnodes: NUMBERS_MAX + 1, ..good },
            ReplicasConfig { masks: [1, 0, 0, 0], ..good },
            ReplicasConfig { cookie_ns: 0, ..good },
        ] {
            assert!(Replicas::new(&bad, 1, 1).is_err(), "{bad:?}");
        }
    }
}
