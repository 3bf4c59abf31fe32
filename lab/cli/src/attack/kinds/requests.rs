//! Floods of public requests, with the attacker's own identities.

use crate::attack::forge::{Forge, NOBODY_HAS};
use midflight_wire::Header;
use midflight_wire::tasks::{
    Cancel, Keepalive, Operation, Probe, Register, Release, Retrieve, SLOT_PLACES, SlotKind, TaskName,
};
use rand::RngExt;
use std::net::SocketAddr;

const FEW: u64 = 8;
/// Cookies expire: renew them in about one of this many packets.
const REFRESH: u32 = 64;

pub(super) fn submit_without_cookie(forge: &mut Forge) {
    let client = forge.name();
    forge.submit(client, 0, 1, 1);
}

pub(super) fn submit_from_anywhere(forge: &mut Forge) {
    submit_without_cookie(forge);
    forge.out.from = forge.somebody();
}

/// An identity with the cookie it received, else a new identity without one.
fn given_or_new(forge: &mut Forge) -> (u64, u64) {
    let given = forge.heard.take().map(|given| (given.identity, given.cookie));
    given.unwrap_or_else(|| (forge.name(), 0))
}

pub(super) fn clients(forge: &mut Forge) {
    let (client, cookie) = given_or_new(forge);
    forge.submit(client, cookie, 1, 1);
}

/// Few clients, with new sequences; they sometimes renew their cookies.
pub(super) fn queue(forge: &mut Forge) {
    let sequence = u32::try_from(forge.count / FEW).unwrap_or(1).max(1);
    match forge.heard.take() {
        Some(given) => forge.submit(given.identity, given.cookie, sequence, 32),
        None => {
            // The identities never change.
            let client = forge.count % FEW + 1;
            let far = if forge.one_in(REFRESH) { 1 << 20 } else { 0 };
            forge.submit(client, 0, sequence.wrapping_add(far), 32);
        }
    }
}

fn register(forge: &mut Forge, executor: u64, cookie: u64) {
    let fixed = Register {
        header: Header::new(Operation::Register, 0, 1),
        executor: executor.into(),
        cookie: cookie.into(),
        first: 0.into(),
        // Its slots never ask for tasks.
        resources: NOBODY_HAS,
        kind: SlotKind::Ordinary as u8,
        counter: 0.into(),
        places: [0.into(); SLOT_PLACES],
    };
    forge.write(&fixed).set_count(32);
}

pub(super) fn slots(forge: &mut Forge) {
    let (executor, cookie) = given_or_new(forge);
    register(forge, executor, cookie);
}

fn task_name(forge: &mut Forge) -> TaskName {
    TaskName { submission: forge.submission().into(), index: forge.random.random_range(0..32), reserved: [0; 3] }
}

pub(super) fn probes(forge: &mut Forge) {
    let (client, cookie) = given_or_new(forge);
    let (header, name) = (Header::new(Operation::Probe, 0, forge.number()), task_name(forge));
    let fixed = Probe { header, client: client.into(), cookie: cookie.into() };
    forge.write_all(&fixed, &[name; 32]);
}

/// If the response to a forged address arrives, the attacker can use that address like its own.
pub(super) fn stolen(forge: &mut Forge) {
    let given = forge.heard.take();
    forge.out.from = given.map_or_else(|| forge.somebody(), |given| given.at);
    let (identity, cookie) = given.map_or_else(|| (forge.name(), 0), |given| (given.identity, given.cookie));
    if identity % 2 == 0 { register(forge, identity, cookie) } else { forge.submit(identity, cookie, 1, 32) }
}

/// All requests that the switch answers without a cookie, in turn.
fn request(forge: &mut Forge) {
    let name = forge.name();
    let wait = forge.wait();
    let counter = forge.name().into();
    match forge.count % 8 {
        0 => forge.submit(name, 0, 1, 1),
        1 => register(forge, name, 0),
        2 => {
            let fixed = Probe { header: Header::new(Operation::Probe, 0, 1), client: name.into(), cookie: 0.into() };
            forge.write(&fixed);
        }
        3 => {
            let fixed = Cancel { header: forge.header(Operation::Cancel), client: name.into(), cookie: 0.into() };
            let task = task_name(forge);
            forge.write_all(&fixed, &[task]);
        }
        4 => {
            let header = forge.header(Operation::Retrieve);
            forge.write_all(&Retrieve { header, counter, resources: 1, ahead: 0, reserved: [0; 6] }, &[wait; 13]);
        }
        5 => {
            let header = forge.header_of_another_epoch(Operation::Keepalive);
            forge.write_all(&Keepalive { header, counter }, &[wait]);
        }
        6 => super::forgeries::write_release(forge, 13),
        _ => {
            // Of another version: VERSION is the response.
            let header = Header { version: 1, ..Header::new(Operation::Release, 0, 0) };
            forge.write(&Release { header, counter });
        }
    }
}

pub(super) fn reflection(forge: &mut Forge) {
    request(forge);
    forge.out.from = forge.known.bystander;
}

pub(super) fn port_zero(forge: &mut Forge) {
    request(forge);
    forge.out.from.set_port(0);
}

/// From addresses in the attacker's network that no host has: the switch's machine must resolve them to answer.
pub(super) fn absent(forge: &mut Forge) {
    request(forge);
    let nobody = forge.random.random_range(100..250);
    forge.out.from = SocketAddr::new(forge.neighbour(nobody), forge.port());
}

pub(super) fn requests_from_anywhere(forge: &mut Forge) {
    request(forge);
    forge.out.from = forge.somebody();
}
