//! Damaged datagrams, and ones that are not packets of this version.

use crate::attack::datagram::Flaw;
use crate::attack::forge::Forge;
use midflight_wire::tasks::Operation;
use midflight_wire::{Header, PACKET_MAX, Version};
use rand::RngExt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use zerocopy::IntoBytes;

/// Offsets of the header fields to damage.
const VERSION_AT: usize = 2;
const KEY_AT: usize = 5;
/// The longest datagram in an Ethernet frame of 1,500 bytes, also over IPv6.
const FRAME_MOST: usize = 1452;
/// A SUBMIT of one task.
const USUAL: usize = 84;

pub(super) fn past_everybody(forge: &mut Forge) {
    random(forge, USUAL..=USUAL);
    forge.out.to = forge.known.bystander;
}

pub(super) fn random_to_switch(forge: &mut Forge) {
    random(forge, 0..=PACKET_MAX);
}

pub(super) fn random_to_others(forge: &mut Forge) {
    random(forge, 0..=PACKET_MAX);
    to_one_of_the_others(forge);
}

fn random(forge: &mut Forge, lengths: std::ops::RangeInclusive<usize>) {
    let length = forge.random.random_range(lengths);
    forge.out.payload.resize(length, 0);
    forge.random.fill(&mut forge.out.payload[..]);
}

/// To a client or an executor, with the switch's source address.
fn to_one_of_the_others(forge: &mut Forge) {
    if forge.one_in(2) { forge.pose_as_switch_to_client() } else { forge.pose_as_switch_to_executor() }
}

fn operation(forge: &mut Forge) -> Operation {
    Operation::ALL[forge.random.random_range(0..Operation::ALL.len())]
}

/// A correct header and then random bytes, often of a valid length.
fn any(forge: &mut Forge) {
    let operation = operation(forge);
    let header = Header { count: forge.random.random_range(0..40), ..forge.header(operation) };
    random(forge, 0..=PACKET_MAX - size_of::<Header>());
    let length = forge.out.payload.len() / 4 * 4;
    forge.out.payload.truncate(length);
    forge.out.payload.splice(0..0, header.as_bytes().iter().copied());
}

fn request(forge: &mut Forge) {
    let (client, tasks) = (forge.name(), forge.random.random_range(1..=32));
    forge.submit(client, 0, 1, tasks);
}

pub(super) fn malformed(forge: &mut Forge) {
    any(forge);
    if forge.one_in(2) {
        to_one_of_the_others(forge);
    }
}

pub(super) fn truncated(forge: &mut Forge) {
    request(forge);
    let length = forge.random.random_range(0..forge.out.payload.len());
    forge.out.payload.truncate(length);
}

pub(super) fn oversized(forge: &mut Forge) {
    request(forge);
    let length = forge.random.random_range(forge.out.payload.len() + 1..=FRAME_MOST);
    forge.out.payload.resize(length, 0);
}

/// To the switch's machine at its address in the attacker's network, which the cluster does not use.
pub(super) fn misdirected(forge: &mut Forge) {
    random(forge, 1..=1);
    forge.out.from = if forge.one_in(2) { forge.client() } else { forge.executor() };
    forge.out.to.set_ip(forge.neighbour(1));
}

fn of_another_version(forge: &mut Forge) {
    request(forge);
    forge.out.payload[VERSION_AT] = [0, 1, 3, 255][forge.random.random_range(0..4)];
}

pub(super) fn versions(forge: &mut Forge) {
    of_another_version(forge);
    forge.out.from = if forge.one_in(2) { forge.client() } else { forge.executor() };
}

pub(super) fn version_storm(forge: &mut Forge) {
    if forge.one_in(2) {
        let version = Version { version: forge.random.random(), ..Version::OURS };
        forge.write(&version);
    } else {
        of_another_version(forge);
    }
    let parties = [forge.known.switch, forge.client(), forge.executor()];
    let (from, on) = (forge.random.random_range(0..3), forge.random.random_range(1..3));
    (forge.out.from, forge.out.to) = (parties[from], parties[(from + on) % 3]);
}

pub(super) fn keys(forge: &mut Forge) {
    any(forge);
    forge.out.payload[KEY_AT] = forge.random.random_range(1..=255);
    if forge.one_in(3) {
        to_one_of_the_others(forge);
    }
}

pub(super) fn fragments(forge: &mut Forge) {
    request(forge);
    forge.out.payload.truncate(512);
    let offset = if forge.one_in(2) { 0 } else { forge.random.random_range(0..64) };
    forge.out.flaw = Flaw::Fragment { offset, more: forge.one_in(2) };
    forge.out.from.set_port(forge.random.random_range(1..256));
    if forge.one_in(3) {
        let port = forge.out.from.port();
        to_one_of_the_others(forge);
        forge.out.from.set_port(port);
    }
}

pub(super) fn checksums(forge: &mut Forge) {
    request(forge);
    forge.out.flaw = if forge.one_in(2) { Flaw::NoChecksum } else { Flaw::WrongChecksum };
}

pub(super) fn odd_sources(forge: &mut Forge) {
    request(forge);
    let port = match forge.count % 3 {
        0 => forge.known.switch.port(),
        1 => 0,
        _ => forge.port(),
    };
    let switch = forge.known.switch.ip();
    let odd: [IpAddr; 5] = match switch {
        IpAddr::V4(_) => [
            Ipv4Addr::LOCALHOST.into(),
            Ipv4Addr::new(224, 0, 0, 1).into(),
            Ipv4Addr::BROADCAST.into(),
            Ipv4Addr::new(10, 77, 255, 255).into(),
            switch,
        ],
        IpAddr::V6(_) => [
            Ipv6Addr::LOCALHOST.into(),
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(),
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(10, 77, 0, 2).to_ipv6_mapped().into(),
            switch,
        ],
    };
    forge.out.from = SocketAddr::new(odd[forge.random.random_range(0..odd.len())], port);
}
