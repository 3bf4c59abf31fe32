//! Packets for benchmarks of the store's switch: a set of three replicas, one client, a key in each key group.

use anyhow::Result;
use midflight_dataplane::store::{LEASE_MAX_NS, NewSet, Policy, ReplyCheck, SetOrder};
use midflight_wire::packet;
#[cfg(feature = "kernel")]
use midflight_wire::store::Hello;
use midflight_wire::store::{Heartbeat, Operation, Replica, Request, Write};
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

pub(super) const SECRET: u128 = 0x5eed;
const SET: u16 = 1;
const KGROUP_BITS: u8 = 12;
/// Packets per timed block: one for each key group.
pub(super) const BLOCK: u32 = 1 << KGROUP_BITS;
const INCARNATION: u64 = 1;
const SID: u64 = 1;
const KEY: [u8; 16] = [7; 16];
pub(super) const VALUE: [u8; 16] = [8; 16];
pub(super) const REPLICAS: u8 = 3;
pub(super) const LEADER: u8 = 0;

pub(super) fn replica_address(slot: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, slot + 1], 7001))
}

pub(super) fn client_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1], 7000))
}

pub(super) fn set() -> SetOrder {
    SetOrder::add(&NewSet {
        number: SET,
        incarnation: INCARNATION,
        lease_ns: LEASE_MAX_NS,
        kgroup_bits: KGROUP_BITS,
        reply_check: ReplyCheck::Strict,
        policy: Policy::LeaderAvoidance,
        replicas: (0..REPLICAS).map(replica_address).collect(),
    })
}

/// The leader's HEARTBEAT, which begins the session.
pub(super) fn heartbeat(now: u64) -> Vec<u8> {
    let beat = Heartbeat {
        incarnation: INCARNATION.into(),
        sid: SID.into(),
        start: 1.into(),
        echo: now.into(),
        set: SET.into(),
        leader: LEADER,
        kgroup_bits: KGROUP_BITS,
        ..Heartbeat::new(0, 1)
    };
    let member =
        |slot| Replica { address: replica_address(slot).into(), weight: 10, matched: 1.into(), reserved: [0; 3] };
    packet(&beat, &(0..REPLICAS).map(member).collect::<Vec<_>>())
}

/// A request for a key of key group `i`.
pub(super) fn request(operation: Operation, i: u32, cookie: u64) -> Vec<u8> {
    let mut request = Request {
        request: u64::from(i).into(),
        hash: (i.reverse_bits()).into(),
        set: SET.into(),
        key_length: (KEY.len() as u16).into(),
        ..Request::new(operation)
    };
    request.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
    let write = Write::new_zeroed();
    match operation {
        Operation::Write => [request.as_bytes(), write.as_bytes(), &KEY, &VALUE].concat(),
        _ => [request.as_bytes(), &KEY].concat(),
    }
}

/// Proves its sender.
#[cfg(feature = "kernel")]
pub(super) fn hello(slot: u8, now: u64) -> Vec<u8> {
    let (incarnation, echo) = (INCARNATION.into(), now.into());
    Hello { incarnation, echo, set: SET.into(), slot, ..Hello::new(0, 1) }.as_bytes().to_vec()
}

/// A forwarded request, changed to another key group and SEQ.
#[cfg(feature = "kernel")]
pub(super) fn renumbered(asked: &[u8], i: u32, seq: u64) -> Result<Vec<u8>> {
    let mut asked = asked.to_vec();
    let (request, _) = Request::mut_from_prefix(&mut asked).map_err(|_| anyhow::anyhow!("it is no request"))?;
    (request.hash, request.seq) = (i.reverse_bits().into(), seq.into());
    Ok(asked)
}

/// A replica's response to a forwarded request: to a READ with a value, to a WRITE with its SEQ and an index.
pub(super) fn reply(asked: &[u8], value: &[u8], index: u64) -> Result<(SocketAddr, Vec<u8>)> {
    let (request, _) = Request::ref_from_prefix(asked).map_err(|_| anyhow::anyhow!("it is no request"))?;
    let mut reply = Request { replicas: (1 << REPLICAS) - 1, ..*request };
    reply.header.operation += 1;
    let from = replica_address(request.slot);
    if request.header.operation == Operation::Read as u8 {
        return Ok((from, [reply.as_bytes(), &KEY, value].concat()));
    }
    (reply.index, reply.key_length) = (index.into(), 0.into());
    Ok((from, reply.as_bytes().to_vec()))
}
