//! The operator's side of the protocol, message by message.

use crate::world::Switch;
use midflight_cache::control::order::order;
use midflight_cache::control::{Ask, ControlMessage, Order, Refusal, RuleKeeper, Set, SetNumber, Term};
use midflight_dataplane::cache::{Cache, CacheConfig, Rule};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::SocketAddr;

const FIRST: Term = Term { number: 1, controller: 5 };
const LATER: Term = Term { number: 2, controller: 4 };
const ME: u64 = 0xBEEF;

fn at(number: u8) -> SocketAddr {
    ([10, 0, 0, number], 7700).into()
}

/// Of loading 0, which operators have before the first inventory.
fn set(term: Term, sequence: u32, rules: &[Rule]) -> ControlMessage {
    set_of(term, SetNumber { loading: 0, sequence }, rules)
}

fn set_of(term: Term, number: SetNumber, rules: &[Rule]) -> ControlMessage {
    let orders = rules.iter().copied().map(order).collect();
    ControlMessage::Set(Set { term, number, incarnation: ME, orders, complete: false })
}

fn complete(message: ControlMessage) -> ControlMessage {
    let ControlMessage::Set(set) = message else { panic!("{message:?}") };
    ControlMessage::Set(Set { complete: true, ..set })
}

fn ask(term: Option<Term>, inventory: bool) -> ControlMessage {
    ControlMessage::Ask(Ask { number: 9, term, inventory: inventory.then_some(1) })
}

struct Side {
    keeper: RuleKeeper,
    switch: Switch,
}

impl Side {
    fn new() -> Self {
        Self { keeper: RuleKeeper::new(ME, Some(1)), switch: Switch::default() }
    }

    fn give(&mut self, message: &ControlMessage) -> ControlMessage {
        self.keeper.handle(1_000, message, &mut self.switch).expect("an answer")
    }

    /// Asks for an inventory, which starts this loading; returns the number of the last SET, which the next one must follow.
    fn inventory(&mut self, loading: u32) -> SetNumber {
        let ask = ControlMessage::Ask(Ask { number: 9, term: Some(FIRST), inventory: Some(loading) });
        let ControlMessage::Inventory(inventory) = self.give(&ask) else { panic!() };
        inventory.last
    }

    fn refusal(&mut self, message: &ControlMessage) -> Option<Refusal> {
        match self.give(message) {
            ControlMessage::Refused(refused) => Some(refused.why),
            _ => None,
        }
    }
}

const SERVE: Rule = Rule::Serve(3);

#[test]
fn n7_orders_of_an_older_term_are_refused_from_the_first_word_of_a_later_one() {
    let mut side = Side::new();
    assert_eq!(side.refusal(&set(FIRST, 1, &[SERVE])), None);
    assert_eq!(side.refusal(&ask(Some(LATER), true)), None);
    assert_eq!(side.refusal(&set(FIRST, 2, &[Rule::Serve(4)])), Some(Refusal::OlderTerm));
    assert_eq!(side.refusal(&ask(Some(FIRST), false)), Some(Refusal::OlderTerm));
    assert!(!side.switch.rsnodes.contains_key(&4));
    // Of two terms with the same number, the one with the greater controller number is followed.
    let same = Term { controller: 9, ..LATER };
    assert_eq!(side.refusal(&set(same, 1, &[Rule::Serve(5)])), None);
    assert_eq!(side.refusal(&set(LATER, 1, &[Rule::Serve(6)])), Some(Refusal::OlderTerm));
    assert_eq!(side.keeper.counters().older_term, 3);
}

#[test]
fn n7_orders_are_carried_out_once_and_in_their_sequence() {
    let mut side = Side::new();
    let label = |id: u16| Rule::Group { group: 0, rsnode: Some(id) };
    let (first, second) = (set(FIRST, 1, &[label(1)]), set(FIRST, 2, &[label(2)]));
    assert_eq!(side.refusal(&second), Some(Refusal::OutOfSequence), "the first is missing");
    let done = side.give(&first);
    assert_eq!(side.give(&first), done, "the same again");
    assert_eq!(side.refusal(&second), None);
    assert_eq!(side.refusal(&first), Some(Refusal::OutOfSequence), "too late");
    assert_eq!(side.switch.labels.get(&0), Some(&2));
    assert_eq!(side.refusal(&set(FIRST, u32::MAX, &[label(3)])), Some(Refusal::OutOfSequence));
    let counters = side.keeper.counters();
    assert_eq!((counters.sets, counters.repeated, counters.out_of_sequence), (2, 1, 3));
}

/// An inventory stays true: earlier orders that arrive later are refused, however late.
#[test]
fn n7_orders_from_before_an_inventory_are_refused() {
    let mut side = Side::new();
    let label = |id: u16| [Rule::Group { group: 0, rsnode: Some(id) }];
    let of = |loading: u32, sequence: u32| SetNumber { loading, sequence };
    assert_eq!(side.inventory(1), of(1, 0));
    assert_eq!(side.refusal(&set_of(FIRST, of(1, 1), &label(1))), None);
    let late = set_of(FIRST, of(1, 2), &label(2));
    assert_eq!([2, 2, 1].map(|loading| side.inventory(loading)), [of(2, 0); 3], "the same again, and a late one");
    assert_eq!(side.refusal(&late), Some(Refusal::OutOfSequence));
    assert_eq!(
        side.refusal(&set_of(FIRST, of(1, 1), &label(1))),
        Some(Refusal::OutOfSequence),
        "carried out, but before"
    );
    assert_eq!(side.refusal(&set_of(FIRST, of(2, 0), &label(3))), Some(Refusal::OutOfSequence), "0 is no order");
    assert_eq!(side.refusal(&set_of(FIRST, of(3, 1), &label(3))), Some(Refusal::OutOfSequence), "of no inventory");
    assert_eq!(side.switch.labels.get(&0), Some(&1));
    assert_eq!(side.refusal(&set_of(FIRST, of(2, 1), &label(4))), None);
    assert_eq!(side.switch.labels.get(&0), Some(&4));
}

#[test]
fn n6_orders_for_an_operator_that_has_started_again_are_refused() {
    let mut side = Side::new();
    side.keeper = RuleKeeper::new(ME + 1, None);
    assert_eq!(side.refusal(&set(FIRST, 1, &[SERVE])), Some(Refusal::OtherIncarnation));
    assert_eq!(side.keeper.term(), Term::NONE);
}

#[test]
fn n7_a_new_term_removes_what_it_has_not_set() {
    let mut side = Side::new();
    let (host, other) = ([10, 0, 1, 1].into(), [10, 0, 1, 2].into());
    let of = |ip| Rule::Host { ip, rack: 0, group: Some(0) };
    let own = Rule::Own { rack: Some(0), selector: None };
    let rules = [own, Rule::Operator(at(1)), SERVE, Rule::Group { group: 0, rsnode: Some(3) }, of(host), of(other)];
    side.give(&complete(set(FIRST, 1, &rules)));
    side.give(&set(LATER, 1, &[own, Rule::Operator(at(1)), of(host)]));
    assert_eq!(side.keeper.rules().count(), 6, "not before it is complete");
    side.give(&complete(set(LATER, 2, &[Rule::RsNode { id: 4, operator: Some(at(1)) }])));
    let left: Vec<Rule> = side.keeper.rules().collect();
    assert_eq!(left, [own, Rule::Operator(at(1)), Rule::RsNode { id: 4, operator: Some(at(1)) }, of(host)]);
    assert!(side.switch.labels.is_empty());
    assert_eq!(side.switch.rsnodes.into_iter().collect::<Vec<_>>(), [(4, Some(at(1)))]);
    assert_eq!(side.keeper.counters().swept, 3);
}

#[test]
fn n7_an_inventory_says_what_the_next_controller_must_know() {
    let mut side = Side::new();
    let rules = [SERVE, Rule::RsNode { id: 9, operator: Some(at(2)) }, Rule::Group { group: 7, rsnode: Some(9) }];
    side.give(&set(FIRST, 1, &rules));
    side.give(&set(FIRST, 2, &[Rule::RsNode { id: 3, operator: None }]));
    let ControlMessage::Inventory(inventory) = side.give(&ask(Some(LATER), true)) else { panic!() };
    assert_eq!(
        (inventory.term, inventory.last, inventory.last_rsnode),
        (LATER, SetNumber { loading: 1, sequence: 0 }, 9)
    );
    assert_eq!((inventory.rsnodes, inventory.labels), (vec![(9, Some(at(2)))], vec![(7, 9)]));
}

#[test]
fn n8_orders_beyond_the_bounds_of_an_operator_are_named() {
    struct Core(Cache);
    impl midflight_cache::control::Parts for Core {
        fn set(&mut self, rule: Rule) -> midflight_dataplane::cache::Outcome {
            self.0.set(rule)
        }
        fn request_counts(&self, group: u16) -> [u64; 4] {
            self.0.counts(group)
        }
        fn load(&self) -> midflight_cache::control::keeper::Load {
            Default::default()
        }
        fn set_replica_group(&mut self, _: u32, _: &[SocketAddr]) -> midflight_dataplane::cache::Outcome {
            midflight_dataplane::cache::Outcome::Bad
        }
        fn set_selectors(&mut self, _: u32) {}
    }
    let config = CacheConfig { racks: 2, groups: 1, rsnodes: 3, places: 4, ..CacheConfig::default() };
    let mut core = Core(Cache::new(&config, 1, 1).unwrap());
    let mut keeper = RuleKeeper::new(ME, None);
    let rack = |rack| Rule::Rack { rack, operator: Some(at(1)), marker: 0 };
    let mut message = set(FIRST, 1, &[rack(1), rack(2), Rule::Serve(3), Rule::Serve(4)]);
    if let ControlMessage::Set(set) = &mut message {
        set.orders.push(Order::ReplicaGroup { group: 1, servers: vec![at(9)] });
    }
    let Some(ControlMessage::Done(done)) = keeper.handle(0, &message, &mut core) else { panic!() };
    assert_eq!(done.refused, [(1, 2), (3, 2), (4, 2)]);
    assert_eq!(keeper.rules().count(), 2);
    let host = Rule::Host { ip: at(5).ip(), rack: 1, group: Some(0) };
    let own = Rule::Own { rack: Some(1), selector: None };
    keeper.handle(0, &set(FIRST, 2, &[own, host]), &mut core).unwrap();
    let Some(ControlMessage::Report(report)) = keeper.handle(5, &ask(None, false), &mut core) else { panic!() };
    assert_eq!((report.counts, report.heard_ns, report.at_ns), (vec![(0, [0; 4])], Some(5), 5));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The term never decreases, and the operator has what the greatest term set last.
    #[test]
    fn n7_no_order_of_an_older_term_is_obeyed(messages in vec((0..4_u64, 0..3_u64, 0..4_u32, any::<bool>()), 0..60)) {
        let mut side = Side::new();
        let mut highest = Term::NONE;
        let mut label = None;
        for (number, controller, sequence, is_ask) in messages {
            let term = Term { number: number + 1, controller };
            let id = (1 + number * 100 + controller * 10 + u64::from(sequence)) as u16;
            let sets = side.keeper.counters().sets;
            let message = if is_ask { ask(Some(term), false) } else { set(term, sequence, &[Rule::Group { group: 0, rsnode: Some(id) }]) };
            side.give(&message);
            if side.keeper.counters().sets > sets {
                prop_assert!(term >= highest);
                label = Some(id);
            }
            highest = highest.max(term);
            prop_assert_eq!(side.keeper.term(), highest);
            prop_assert_eq!(side.switch.labels.get(&0).copied(), label);
        }
    }
}
