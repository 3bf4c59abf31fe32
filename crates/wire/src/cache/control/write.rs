//! Writes messages.

use super::layout::*;
use super::*;
use crate::Address;
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

/// Appends a message. Truncates lists beyond the message's bounds, which the caller keeps.
pub fn write(message: &ControlMessage, to: &mut Vec<u8>) {
    let start = to.len();
    to.extend_from_slice(&[0; size_of::<ControlHead>()]);
    let kind = match message {
        ControlMessage::Ask(ask) => write_ask(ask, to),
        ControlMessage::Set(set) => write_set(set, to),
        ControlMessage::Report(report) => write_report(report, to),
        ControlMessage::Inventory(inventory) => write_inventory(inventory, to),
        ControlMessage::Done(done) => write_done(done, to),
        ControlMessage::Refused(refused) => write_refused(refused, to),
    };
    let length = to.len() - start - size_of::<ControlHead>();
    let head = ControlHead {
        magic: CONTROL_MAGIC.into(),
        version: CONTROL_VERSION,
        kind: kind as u8,
        reserved: 0.into(),
        length: (length as u32).into(),
    };
    to[start..start + size_of::<ControlHead>()].copy_from_slice(head.as_bytes());
}

fn term(term: Term) -> ControlTerm {
    ControlTerm { number: term.number.into(), controller: term.controller.into() }
}

fn set_number(number: SetNumber) -> ControlSetNumber {
    ControlSetNumber { loading: number.loading.into(), sequence: number.sequence.into() }
}

fn address(address: Option<SocketAddr>) -> Address {
    address.map_or_else(Address::new_zeroed, Address::from)
}

fn write_ask(ask: &Ask, to: &mut Vec<u8>) -> ControlKind {
    let ask = ControlAsk {
        number: ask.number.into(),
        term: term(ask.term.unwrap_or(Term::NONE)),
        inventory: ask.inventory.unwrap_or(0).into(),
        reserved: 0.into(),
    };
    to.extend_from_slice(ask.as_bytes());
    ControlKind::Ask
}

fn write_set(set: &Set, to: &mut Vec<u8>) -> ControlKind {
    let orders = &set.orders[..set.orders.len().min(ORDERS_MAX)];
    let fixed = ControlSet {
        term: term(set.term),
        number: set_number(set.number),
        incarnation: set.incarnation.into(),
        count: (orders.len() as u32).into(),
        complete: set.complete.into(),
        reserved: [0; 3],
    };
    to.extend_from_slice(fixed.as_bytes());
    orders.iter().for_each(|order| write_order(order, to));
    ControlKind::Set
}

fn write_order(order: &Order, to: &mut Vec<u8>) {
    let mut fixed = ControlOrder::new_zeroed();
    let mut behind: &[SocketAddr] = &[];
    match order {
        Order::Rule(rule) => {
            (fixed.what, fixed.rack, fixed.group) = (rule.what, rule.rack.into(), rule.group.into());
            (fixed.rsnode, fixed.number) = (rule.rsnode.into(), rule.marker.into());
            fixed.address = rule.address.into();
        }
        Order::ReplicaGroup { group, servers } => {
            behind = &servers[..servers.len().min(usize::from(u8::MAX))];
            (fixed.what, fixed.servers) = (WHAT_REPLICA_GROUP, behind.len() as u8);
            fixed.number = (*group).into();
        }
        Order::Selectors(selectors) => (fixed.what, fixed.number) = (WHAT_SELECTORS, (*selectors).into()),
    }
    to.extend_from_slice(fixed.as_bytes());
    behind.iter().for_each(|&server| to.extend_from_slice(Address::from(server).as_bytes()));
}

fn write_report(report: &Report, to: &mut Vec<u8>) -> ControlKind {
    let fixed = ControlReport {
        number: report.number.into(),
        incarnation: report.incarnation.into(),
        term: term(report.term),
        last: set_number(report.last),
        heard_ns: report.heard_ns.unwrap_or(u64::MAX).into(),
        at_ns: report.at_ns.into(),
        selector: report.selector.unwrap_or(0).into(),
        selected: report.selected.into(),
        copied: report.copied.into(),
        count: (report.counts.len() as u32).into(),
        reserved: 0.into(),
    };
    to.extend_from_slice(fixed.as_bytes());
    for (group, tiers) in &report.counts {
        let count = ControlCount { group: (*group).into(), reserved: [0; 6], tiers: tiers.map(Into::into) };
        to.extend_from_slice(count.as_bytes());
    }
    ControlKind::Report
}

fn write_inventory(inventory: &Inventory, to: &mut Vec<u8>) -> ControlKind {
    let fixed = ControlInventory {
        number: inventory.number.into(),
        incarnation: inventory.incarnation.into(),
        term: term(inventory.term),
        last: set_number(inventory.last),
        last_rsnode: inventory.last_rsnode.into(),
        reserved: 0.into(),
        rsnodes: (inventory.rsnodes.len() as u32).into(),
        labels: (inventory.labels.len() as u32).into(),
    };
    to.extend_from_slice(fixed.as_bytes());
    for &(id, operator) in &inventory.rsnodes {
        let here = u8::from(operator.is_none());
        let rsnode = ControlRsnode { id: id.into(), here, reserved: 0, address: address(operator) };
        to.extend_from_slice(rsnode.as_bytes());
    }
    for &(group, rsnode) in &inventory.labels {
        to.extend_from_slice(ControlLabel { group: group.into(), rsnode: rsnode.into() }.as_bytes());
    }
    ControlKind::Inventory
}

fn write_done(done: &Done, to: &mut Vec<u8>) -> ControlKind {
    let fixed = ControlDone {
        incarnation: done.incarnation.into(),
        term: term(done.term),
        number: set_number(done.number),
        selector: done.selector.unwrap_or(0).into(),
        count: (done.refused.len() as u32).into(),
        reserved: 0.into(),
    };
    to.extend_from_slice(fixed.as_bytes());
    for &(order, outcome) in &done.refused {
        to.extend_from_slice(ControlNotDone { order: order.into(), outcome, reserved: 0 }.as_bytes());
    }
    ControlKind::Done
}

fn write_refused(refused: &Refused, to: &mut Vec<u8>) -> ControlKind {
    let fixed = ControlRefused {
        incarnation: refused.incarnation.into(),
        term: term(refused.term),
        last: set_number(refused.last),
        why: refused.why as u8,
        reserved: [0; 7],
    };
    to.extend_from_slice(fixed.as_bytes());
    ControlKind::Refused
}
