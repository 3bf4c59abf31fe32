//! The controller's orders: checks a rule before it goes into the tables.

use super::of_address;
use midflight_dataplane::cache::{CacheConfig, Outcome, Rule, RuleOrder};
use midflight_rmt::cache::{End, Place, Rules};
use midflight_wire::cache::ILLEGAL_RSNODE;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Executes an order, or returns why not.
pub(super) fn obey(rules: &mut Rules, config: &CacheConfig, order: &RuleOrder) -> Outcome {
    let Some(rule) = order.rule() else { return Outcome::Bad };
    if !is_within_bounds(config, &rule) {
        return Outcome::Bad;
    }
    match rule {
        Rule::Own { selector: Some(selector), .. } if rules.places.contains_key(&of_address(selector)) => {
            return Outcome::Bad;
        }
        Rule::Own { rack, selector } => {
            (rules.own_rack, rules.selector) = (rack, selector.map(of_address));
        }
        Rule::Rack { rack, operator, marker } => {
            set(&mut rules.racks, rack, operator.map(|operator| (of_address(operator), marker)));
        }
        Rule::RsNode { id, operator } => set(&mut rules.rsnodes, id, operator.map(|at| Some(of_address(at)))),
        Rule::Serve(id) => set(&mut rules.rsnodes, id, Some(None)),
        Rule::Group { group, rsnode } => set(&mut rules.groups, group, Some(rsnode.unwrap_or(ILLEGAL_RSNODE))),
        Rule::Gone(address) => _ = rules.places.remove(&of_address(address)),
        Rule::Host { ip, rack, group } => {
            return put(rules, config, of_address(SocketAddr::new(ip, 0)), Place::Host { rack, group });
        }
        Rule::Server { address, rack } => return put(rules, config, of_address(address), Place::Server { rack }),
        Rule::Operator(address) => return put(rules, config, of_address(address), Place::Operator),
    }
    Outcome::Done
}

fn is_within_bounds(config: &CacheConfig, rule: &Rule) -> bool {
    let is_rack = |rack: u16| u32::from(rack) < config.racks;
    let is_group = |group: u16| u32::from(group) < config.groups;
    let is_id = |id: u16| id != 0 && u32::from(id) <= config.rsnodes;
    match *rule {
        Rule::Own { rack, .. } => rack.is_none_or(is_rack),
        Rule::Rack { rack, .. } => is_rack(rack),
        Rule::Host { rack, group, .. } => is_rack(rack) && group.is_none_or(is_group),
        Rule::Server { address, rack } => is_rack(rack) && address.port() != 0,
        Rule::Operator(address) => address.port() != 0,
        Rule::Gone(_) => true,
        Rule::RsNode { id, .. } | Rule::Serve(id) => is_id(id),
        Rule::Group { group, rsnode } => is_group(group) && rsnode.is_none_or(is_id),
    }
}

fn set<V>(rules: &mut BTreeMap<u16, V>, key: u16, value: Option<V>) {
    match value {
        Some(value) => _ = rules.insert(key, value),
        None => _ = rules.remove(&key),
    }
}

fn put(rules: &mut Rules, config: &CacheConfig, end: End, place: Place) -> Outcome {
    if rules.selector == Some(end) {
        return Outcome::Bad;
    }
    if !rules.places.contains_key(&end) && rules.places.len() >= config.places as usize {
        return Outcome::NoRoom;
    }
    rules.places.insert(end, place);
    Outcome::Done
}

/// Hosts are found by their IP address alone, all others by their port too.
pub(super) fn check(rules: &Rules, config: &CacheConfig) -> Result<(), String> {
    let is_sound = |(end, place): (&End, &Place)| (end.port == 0) == matches!(place, Place::Host { .. });
    if !rules.places.iter().all(is_sound) {
        return Err("a host has a port, or a server none".to_owned());
    }
    if rules.selector.is_some_and(|selector| rules.places.contains_key(&selector)) {
        return Err("the selector is at a server or operator".to_owned());
    }
    if rules.places.len() > config.places as usize { Err("too many places".to_owned()) } else { Ok(()) }
}
