//! Compares the model's keeper with the product's: both get each message in each state of the model's keeper, and must
//! answer alike.

use super::planted::Planted;
use super::state::{IDS, Number, Operator, Orders, Rule, Term};
use midflight_cache::control::keeper::Load;
use midflight_cache::control::order::order;
use midflight_cache::control::{Ask, ControlMessage, Order, Parts, RuleKeeper, Set, SetNumber};
use midflight_dataplane::cache::{Outcome, Rule as Real, TIERS_MAX};
use midflight_wire::cache::control as wire;
use std::collections::HashSet;
use std::net::SocketAddr;

/// An operator whose core refuses nothing, and whether its selector has the replica groups.
#[derive(Clone, Copy, Default)]
struct Willing {
    grouped: bool,
}

impl Parts for Willing {
    fn set(&mut self, _: Real) -> Outcome {
        Outcome::Done
    }

    fn request_counts(&self, _: u16) -> [u64; TIERS_MAX] {
        Default::default()
    }

    fn load(&self) -> Load {
        Load::default()
    }

    fn set_replica_group(&mut self, _: u32, _: &[SocketAddr]) -> Outcome {
        self.grouped = true;
        Outcome::Done
    }

    fn set_selectors(&mut self, _: u32) {}
}

#[derive(Clone, Copy, Debug)]
enum FromController {
    Ask { term: Term, loading: u8 },
    Set { term: Term, number: Number, incarnation: u8, orders: Orders },
}

fn address(operator: u8) -> SocketAddr {
    ([10, 0, 0, operator], 7700).into()
}

fn real_term(term: Term) -> wire::Term {
    wire::Term { number: term.number.into(), controller: term.controller.into() }
}

fn real_number(number: Number) -> SetNumber {
    SetNumber { loading: number.loading.into(), sequence: number.sequence.into() }
}

/// Ids of the model count from 0.
fn real_id(id: usize) -> u16 {
    id as u16 + 1
}

fn real_rules(ids: [Rule; IDS], label: Option<u8>) -> Vec<Real> {
    let rule = |(id, rule): (usize, Rule)| match rule {
        Rule::Unknown => None,
        Rule::Serve => Some(Real::Serve(real_id(id))),
        Rule::At(owner) => Some(Real::RsNode { id: real_id(id), operator: Some(address(owner)) }),
    };
    let label = label.map(|id| Real::Group { group: 0, rsnode: Some(real_id(id.into())) });
    ids.into_iter().enumerate().filter_map(rule).chain(label).collect()
}

fn real_orders(orders: &Orders) -> Vec<Order> {
    let mut said = Vec::new();
    if orders.grouped {
        said.push(Order::ReplicaGroup { group: 1, servers: vec![address(9)] });
    }
    for (id, rule) in orders.ids.into_iter().enumerate() {
        said.extend(rule.map(|rule| match rule {
            Rule::Unknown => order(Real::RsNode { id: real_id(id), operator: None }),
            Rule::Serve => order(Real::Serve(real_id(id))),
            Rule::At(owner) => order(Real::RsNode { id: real_id(id), operator: Some(address(owner)) }),
        }));
    }
    said.extend(orders.label.map(|label| order(Real::Group { group: 0, rsnode: label.map(|id| real_id(id.into())) })));
    said
}

fn real(said: &FromController) -> ControlMessage {
    match *said {
        FromController::Ask { term, loading } => {
            ControlMessage::Ask(Ask { number: 7, term: Some(real_term(term)), inventory: Some(loading.into()) })
        }
        FromController::Set { term, number, incarnation, orders } => ControlMessage::Set(Set {
            term: real_term(term),
            number: real_number(number),
            incarnation: incarnation.into(),
            orders: real_orders(&orders),
            complete: orders.complete,
        }),
    }
}

/// All messages: three terms, two loadings, and orders that set, change, remove and sweep.
fn everything() -> Vec<FromController> {
    let term = |number, controller| Term { number, controller };
    let terms = [term(1, 1), term(1, 2), term(2, 1)];
    let none = Orders::default();
    let serves = Orders { grouped: true, ids: [Some(Rule::Serve), None], ..none };
    let labels = Orders { ids: [None, Some(Rule::At(2))], label: Some(Some(1)), ..none };
    let moves = Orders { ids: [Some(Rule::Unknown), Some(Rule::Serve)], label: Some(Some(0)), complete: true, ..none };
    let removes = Orders { ids: [Some(Rule::At(3)), None], label: Some(None), ..none };
    let sweeps = Orders { complete: true, ..none };
    let mut said = Vec::new();
    for term in terms {
        said.extend([1, 2].map(|loading| FromController::Ask { term, loading }));
        for (loading, sequence) in [(0, 1), (1, 1), (1, 2), (2, 1)] {
            let number = Number { loading, sequence };
            let set = |orders| FromController::Set { term, number, incarnation: 1, orders };
            said.extend([serves, labels, moves, removes, sweeps].map(set));
        }
        said.push(FromController::Set {
            term,
            number: Number { loading: 1, sequence: 1 },
            incarnation: 2,
            orders: serves,
        });
    }
    said
}

/// Gives both the same message. Returns whether they answer alike and end with the same rules.
fn agree(
    model: &mut Operator,
    keeper: &mut RuleKeeper,
    parts: &mut Willing,
    said: &FromController,
    planted: Option<Planted>,
) -> bool {
    let answer = keeper.handle(1, &real(said), parts).expect("each question has an answer");
    let is_alike = match (*said, answer) {
        (FromController::Ask { term, loading }, ControlMessage::Inventory(inventory)) => {
            model.ask(term, loading, planted) && inventory.last == real_number(model.last)
        }
        (FromController::Ask { term, loading }, _) => !model.ask(term, loading, planted),
        (FromController::Set { term, number, incarnation, orders }, answer) => {
            let (is_done, _) = model.set(term, number, incarnation, &orders, planted);
            is_done == matches!(answer, ControlMessage::Done(_))
        }
    };
    let rules: Vec<Real> = keeper.rules().collect();
    let has_the_same = rules == real_rules(model.ids, model.label) && parts.grouped == model.grouped;
    is_alike && has_the_same && keeper.term() == real_term(model.term)
}

/// Visits all states of the model's keeper and returns their number, or the first message on which the two differ.
fn walk(planted: Option<Planted>) -> Result<usize, String> {
    let said = everything();
    let first = Operator { incarnation: 1, ..Operator::default() };
    let mut met = HashSet::from([first]);
    let mut waits = vec![(first, RuleKeeper::new(1, Some(1)), Willing::default())];
    while let Some((before, keeper, parts)) = waits.pop() {
        for said in &said {
            let (mut model, mut keeper, mut parts) = (before, keeper.clone(), parts);
            if !agree(&mut model, &mut keeper, &mut parts, said, planted) {
                return Err(format!("{said:?} in {before:?}: {model:?}, and {keeper:?}"));
            }
            if met.insert(model) {
                waits.push((model, keeper, parts));
            }
        }
    }
    Ok(met.len())
}

#[test]
fn the_models_keeper_does_what_the_products_does() {
    let states = walk(None).unwrap();
    assert!(states > 400, "{states} states");
}

#[test]
fn a_keeper_with_an_error_does_not() {
    for planted in [
        Planted::OlderTermObeyed,
        Planted::SameNumberSameTerm,
        Planted::IncarnationIgnored,
        Planted::AnySequence,
        Planted::InventoryWithoutFence,
    ] {
        assert!(walk(Some(planted)).is_err(), "{planted:?}");
    }
}
