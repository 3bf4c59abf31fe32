//! The cache program: an operator's rules, which send requests to a selector, or to a replica that the operator selects itself.

mod rule;
mod selection;
mod stats;
pub(crate) mod survey;
mod verdict;

pub use rule::{Outcome, Rule, RuleOrder};
pub use selection::Selection;
pub use stats::{KINDS, Stats, TIERS_MAX};
pub use survey::{Survey, SurveyedGroup, SurveyedRsNode, SurveyedServer};
pub use verdict::Verdict;

use crate::Native;
use crate::program::{Bound, Clock, ConfigError, Program};
use midflight_endpoint::{Nanos, SECOND};
use midflight_wire::cache::{Kind, Netrs};
use std::net::SocketAddr;
use zerocopy::FromBytes;

/// `MF_PLACES_MAX`: hosts, servers and operators that an operator may know.
pub const PLACES_MAX: u32 = 1 << 20;
/// `MF_RACKS_MAX`, `MF_GROUPS_MAX` and `MF_RSNODES_MAX`.
pub const NUMBERS_MAX: u32 = 65_534;
/// `MF_SERVERS_MAX`: servers that a selection may know.
pub const SERVERS_MAX: u32 = 65_535;
/// `MF_REPLICA_GROUPS_MAX`.
pub const REPLICA_GROUPS_MAX: u32 = 1 << 20;
/// `MF_UNDER_WAY_MAX`.
pub const UNDER_WAY_MAX: u32 = 65_536;
/// `MF_SELECTORS_MAX`: selectors that may choose among the same servers.
pub const SELECTORS_MAX: u32 = 1 << 20;

/// The cache program.
#[derive(Clone, Copy, Debug)]
pub struct CacheProgram;

/// An operator in this process, the C core. `docs/internals/cache-operator.md` explains its tables.
pub type Cache = Native<CacheProgram>;

/// Bounds of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
#[repr(C)]
pub struct CacheConfig {
    /// Hosts, servers and operators together: 1 to 1,048,576. Default 4,096.
    pub places: u32,
    /// Racks: 1 to 65,534. Default 256.
    pub racks: u32,
    /// Traffic groups: 1 to 65,534. Default 1,024.
    pub groups: u32,
    /// RSNode ids are 1 to this, at most 65,534. Default 4,096.
    pub rsnodes: u32,
    /// At each tier, from the topmost (whose mask is 0): the bits that the markers of two racks share if packets between them pass no
    /// higher tier. Default: three tiers, pods in the upper half of a marker.
    pub masks: [u32; TIERS_MAX],
    /// Length of a cookie interval; a cookie is valid in its own interval and the next. Default 5 s.
    #[cfg_attr(feature = "serde", serde(rename = "cookie", deserialize_with = "crate::duration::nanos"))]
    pub cookie_ns: Nanos,
    /// The algorithm with which the operator selects servers. Default: none, a separate selector does. Otherwise the four bounds below
    /// apply.
    pub selection: Selection,
    /// Servers of all replica groups, which are never removed: 1 to 65,535. Default 1,024.
    pub servers: u32,
    /// Replica groups, which are never removed: 1 to 1,048,576. Default 16,384.
    pub replica_groups: u32,
    /// Requests tracked until answered: 1 to 65,536, rounded up to a power of two. Further ones are sent, but their answers are not
    /// evaluated. Default 8,192.
    pub under_way: u32,
    /// A request unanswered for this long no longer counts as outstanding. Default 1 s.
    #[cfg_attr(feature = "serde", serde(rename = "expire", deserialize_with = "crate::duration::nanos"))]
    pub expire_ns: Nanos,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            places: 4_096,
            racks: 256,
            groups: 1_024,
            rsnodes: 4_096,
            masks: [0, 0xffff_0000, 0xffff_ffff, 0],
            cookie_ns: 5 * SECOND,
            selection: Selection::None,
            servers: 1_024,
            replica_groups: 16_384,
            under_way: 8_192,
            expire_ns: SECOND,
        }
    }
}

impl Program for CacheProgram {
    const NAME: &'static str = "cache";
    const CLOCK: Clock = Clock::Monotonic;
    const OPERATIONS: &'static [&'static str] = &stats::KIND_NAMES;

    type Config = CacheConfig;
    type Verdict = Verdict;
    type Stats = Stats;
    type Order = RuleOrder;
    type Survey = Survey;

    fn violated(_config: &CacheConfig) -> ConfigError {
        ConfigError(
            "places and replica_groups must be 1 to 1,048,576, racks, groups and rsnodes 1 to 65,534, servers 1 to 65,535, \
             under_way 1 to 65,536, the first mask 0, cookie and expire longer than 0"
                .into(),
        )
    }

    fn bounds(config: &CacheConfig) -> Vec<(&'static str, Bound)> {
        vec![
            ("places", Bound::Count(config.places)),
            ("racks", Bound::Count(config.racks)),
            ("groups", Bound::Count(config.groups)),
            ("rsnodes", Bound::Count(config.rsnodes)),
            ("cookie", Bound::Time(config.cookie_ns)),
            ("selection", Bound::Count(config.selection as u32)),
            ("servers", Bound::Count(config.servers)),
            ("replica_groups", Bound::Count(config.replica_groups)),
            ("under_way", Bound::Count(config.under_way)),
            ("expire", Bound::Time(config.expire_ns)),
        ]
    }

    fn ticks(_config: &CacheConfig) -> u32 {
        1
    }

    fn packets(stats: &Stats) -> &[u64] {
        &stats.packets
    }

    fn verdicts(stats: &Stats) -> &[u64] {
        &stats.reasons
    }

    fn is_for_anybody(answer: &[u8]) -> bool {
        let Ok((start, _)) = Netrs::ref_from_prefix(answer) else { return true };
        [Kind::Version as u8, Kind::Cookie as u8].contains(&start.kind)
    }
}

crate::soft_program!(
    CacheProgram,
    "cache",
    "MIDFLIGHT_LAYOUT_CACHE",
    mf_cache_size,
    mf_cache_init,
    mf_cache_packet,
    mf_cache_tick,
    mf_cache_order,
    mf_cache_owes_more,
    mf_cache_stats,
    mf_cache_check,
    survey: survey::go_on
);

unsafe extern "C" {
    fn mf_cache_counts(state: *const u8, group: u32, counts: *mut u64);
}

impl Cache {
    /// Sets a rule.
    pub fn set(&mut self, rule: Rule) -> Outcome {
        let mut order = RuleOrder::from(rule);
        self.order(&mut order);
        order.outcome()
    }

    /// Sets a replica group's servers, if the operator selects itself.
    pub fn set_replica_group(&mut self, group: u32, servers: &[SocketAddr]) -> Outcome {
        let mut order = RuleOrder::replica_group(group, servers);
        self.order(&mut order);
        order.outcome()
    }

    /// Sets the number of selectors that share the same servers, if the operator selects itself.
    pub fn set_selectors(&mut self, selectors: u32) -> Outcome {
        let mut order = RuleOrder::selectors(selectors);
        self.order(&mut order);
        order.outcome()
    }

    /// The monitor's counts of a traffic group: answers by the highest tier passed, 0 the topmost.
    #[must_use]
    pub fn counts(&self, group: u16) -> [u64; TIERS_MAX] {
        let mut counts = [0; TIERS_MAX];
        // SAFETY: the state was initialised, and `counts` has room for all tiers.
        unsafe { mf_cache_counts(self.state(), group.into(), counts.as_mut_ptr()) };
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Engine, SoftProgram};

    unsafe extern "C" {
        fn mf_cache_layout(layout: *mut u64);
    }

    #[test]
    fn structures_and_bounds_are_those_of_cache_h() {
        let mut of_c = [0; 19];
        // SAFETY: it writes nineteen numbers.
        unsafe { mf_cache_layout(of_c.as_mut_ptr()) };
        let sizes = [size_of::<CacheConfig>(), size_of::<Stats>(), size_of::<RuleOrder>()];
        let numbers = NUMBERS_MAX as usize;
        let bounds = [KINDS, TIERS_MAX, PLACES_MAX as usize, numbers, numbers, numbers, rule::RULES];
        let of_selection = [SERVERS_MAX, REPLICA_GROUPS_MAX, UNDER_WAY_MAX, SELECTORS_MAX].map(|bound| bound as usize);
        let of_rust = sizes.into_iter().chain(bounds).chain([Selection::ALL.len()]).chain(of_selection);
        let of_rust = of_rust.chain(survey::LAYOUT).map(|n| n as u64);
        assert_eq!(of_c.to_vec(), of_rust.collect::<Vec<_>>());
    }

    fn operator() -> Cache {
        let config = CacheConfig { places: 3, racks: 2, groups: 2, rsnodes: 2, ..CacheConfig::default() };
        Cache::new(&config, 1, 1).expect("within its bounds")
    }

    fn host(number: u8) -> Rule {
        Rule::Host { ip: [10, 0, 0, number].into(), rack: 1, group: Some(1) }
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

    #[test]
    fn places_are_found_after_many_have_come_and_gone() {
        let config = CacheConfig { places: 200, ..CacheConfig::default() };
        let mut operator = Cache::new(&config, 1, 7).expect("within its bounds");
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
    fn a_survey_has_all_that_has_a_rule_and_the_servers_that_it_chooses_among() {
        let mut operator = choosing();
        let elsewhere = SocketAddr::from(([10, 0, 0, 1], 7000));
        for rule in [
            Rule::Serve(600),
            Rule::RsNode { id: 7, operator: Some(elsewhere) },
            Rule::Group { group: 1_000, rsnode: Some(600) },
            Rule::Group { group: 3, rsnode: None },
        ] {
            assert_eq!(operator.set(rule), Outcome::Done, "{rule:?}");
        }
        assert_eq!(operator.set_replica_group(7, &[server(1), server(3)]), Outcome::Done);
        let (mut survey, mut calls) = (Survey::default(), 1);
        while !Engine::survey(&operator, &mut survey) {
            calls += 1;
        }
        assert_eq!(calls, 2 + 8 + 1, "1,024 groups, 4,096 ids, four servers");
        let groups: Vec<_> = survey.groups.iter().map(|group| (group.group, group.rsnode(), group.answers)).collect();
        assert_eq!(groups, [(3, None, 0), (1_000, Some(600), 0)]);
        let rsnodes: Vec<_> = survey.rsnodes.iter().map(|rsnode| (rsnode.id, rsnode.is_here())).collect();
        assert_eq!((rsnodes, survey.rsnodes[0].address()), (vec![(7, false), (600, true)], elsewhere));
        let servers: Vec<_> = survey.servers.iter().map(|server| (server.address(), server.averages())).collect();
        assert_eq!(servers, [(server(1), [0.0; 3]), (server(3), [0.0; 3])]);
    }

    fn choosing() -> Cache {
        let selection = Selection::LeastOutstanding;
        let config = CacheConfig { selection, servers: 4, replica_groups: 2, ..CacheConfig::default() };
        Cache::new(&config, 1, 1).expect("within its bounds")
    }

    fn server(number: u8) -> SocketAddr {
        ([10, 0, 2, number], 7800).into()
    }

    #[test]
    fn n3_a_replica_group_is_never_changed() {
        let mut operator = choosing();
        assert_eq!(operator.set_replica_group(7, &[server(1), server(3)]), Outcome::Done);
        assert_eq!(operator.set_replica_group(7, &[server(3), server(1)]), Outcome::Done, "the same again");
        for other in [&[server(1), server(2)][..], &[server(1)], &[server(1), server(3), server(4)]] {
            assert_eq!(operator.set_replica_group(7, other), Outcome::Bad, "{other:?}");
        }
        assert_eq!(Engine::check(&operator), Ok(()));
    }

    /// N8: an invalid order changes nothing.
    #[test]
    fn n8_replica_groups_that_make_no_sense_or_do_not_fit_are_refused() {
        let mut operator = choosing();
        let nine: Vec<_> = (0..9).map(server).collect();
        let without_port = [SocketAddr::from(([10, 0, 2, 1], 0))];
        for bad in [&[][..], &nine, &[server(1), server(1)], &without_port] {
            assert_eq!(operator.set_replica_group(1, bad), Outcome::Bad, "{bad:?}");
        }
        assert_eq!(operator.set_replica_group(1 << 24, &[server(1)]), Outcome::Bad, "ids have 24 bits");
        assert_eq!(operator.set_selectors(0), Outcome::Bad);
        assert_eq!(operator.set_selectors(SELECTORS_MAX + 1), Outcome::Bad);
        assert_eq!(operator.set_selectors(8), Outcome::Done);
        // Four servers fit, and two groups.
        assert_eq!(operator.set_replica_group(1, &nine[..5]), Outcome::NoRoom);
        assert_eq!(operator.set_replica_group(1, &nine[..3]), Outcome::Done);
        assert_eq!(operator.set_replica_group(2, &nine[3..5]), Outcome::NoRoom);
        assert_eq!(operator.set_replica_group(2, &nine[2..4]), Outcome::Done);
        assert_eq!(operator.set_replica_group(3, &nine[..1]), Outcome::NoRoom);
        assert_eq!(Engine::check(&operator), Ok(()));
    }

    #[test]
    fn an_operator_that_does_not_choose_takes_no_replica_groups() {
        let mut operator = operator();
        assert_eq!(operator.set_replica_group(1, &[server(1)]), Outcome::Bad);
        assert_eq!(operator.set_selectors(2), Outcome::Bad);
    }

    #[test]
    fn as_many_replica_groups_as_the_configuration_says_are_found() {
        let config = CacheConfig { selection: Selection::C3, servers: 100, ..CacheConfig::default() };
        let mut operator = Cache::new(&config, 1, 7).expect("within its bounds");
        let of = |group: u32| [server((group % 50) as u8), server(50 + (group / 50 % 50) as u8)];
        for group in 0..16_384 {
            assert_eq!(operator.set_replica_group(group * 7, &of(group)), Outcome::Done, "{group}");
        }
        assert_eq!(operator.set_replica_group(1, &of(1)), Outcome::NoRoom);
        assert_eq!(operator.set_replica_group(7, &of(0)), Outcome::Bad);
        assert_eq!(Engine::check(&operator), Ok(()));
    }

    #[test]
    fn counts_are_read_by_an_order_too() {
        let mut operator = operator();
        let read = |operator: &mut Cache, group| {
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
        let good = CacheConfig::default();
        assert!(CacheProgram::state_bytes(&good) > 0);
        for bad in [
            CacheConfig { places: 0, ..good },
            CacheConfig { places: PLACES_MAX + 1, ..good },
            CacheConfig { racks: 0, ..good },
            CacheConfig { racks: NUMBERS_MAX + 1, ..good },
            CacheConfig { groups: 0, ..good },
            CacheConfig { groups: NUMBERS_MAX + 1, ..good },
            CacheConfig { rsnodes: 0, ..good },
            CacheConfig { rsnodes: NUMBERS_MAX + 1, ..good },
            CacheConfig { masks: [1, 0, 0, 0], ..good },
            CacheConfig { cookie_ns: 0, ..good },
            CacheConfig { servers: 0, ..good },
            CacheConfig { servers: SERVERS_MAX + 1, ..good },
            CacheConfig { replica_groups: 0, ..good },
            CacheConfig { replica_groups: REPLICA_GROUPS_MAX + 1, ..good },
            CacheConfig { under_way: 0, ..good },
            CacheConfig { under_way: UNDER_WAY_MAX + 1, ..good },
            CacheConfig { expire_ns: 0, ..good },
        ] {
            assert!(Cache::new(&bad, 1, 1).is_err(), "{bad:?}");
        }
    }
}
