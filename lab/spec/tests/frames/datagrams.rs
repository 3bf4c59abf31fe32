//! Datagrams of clients and executors.

use midflight_wire::tasks::{
    Cancel, Keepalive, Operation, Probe, Register, Registered, Retrieve, SlotName, Submit, TaskInfo, TaskName, Wait,
};
use midflight_wire::{VERSION, counting, packet};
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::FromBytes;

pub(crate) const EPOCH: u32 = 7;

pub(crate) fn probe(client: u64, sequence: u32) -> Vec<u8> {
    counting(&Probe { client: client.into(), ..Probe::new(0, sequence) }, 0)
}

pub(crate) fn submit(client: u64, sequence: u32, tasks: u32) -> Vec<u8> {
    let (client, token, uid, jid) = (client.into(), 3.into(), 1.into(), 2.into());
    let task = TaskInfo { function: 9.into(), argument_length: 16, argument: *b"sixteen of bytes", ..TaskInfo::PLAIN };
    let tasks: Vec<_> = (0..tasks).map(|tid| TaskInfo { tid: tid.into(), ..task }).collect();
    packet(&Submit { client, token, uid, jid, ..Submit::new(EPOCH, sequence) }, &tasks)
}

pub(crate) fn register(executor: u64, slots: u8) -> Vec<u8> {
    counting(&Register { executor: executor.into(), ..Register::new(EPOCH, 1) }, slots)
}

pub(crate) fn registered(answer: &[u8]) -> Vec<SlotName> {
    let (fixed, rest) = Registered::ref_from_prefix(answer).unwrap();
    let names = <[SlotName]>::ref_from_bytes(rest).unwrap();
    assert_eq!((fixed.header.operation, names.len()), (Operation::Registered as u8, usize::from(fixed.header.count)));
    names.to_vec()
}

/// Increases with each call.
fn counter() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    1 + LAST.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn retrieve(slots: &[SlotName], sequence: u32) -> Vec<u8> {
    let waits: Vec<_> = slots.iter().map(|name| name.wait(sequence)).collect();
    packet(&Retrieve { counter: counter().into(), ..Retrieve::new(EPOCH, 0) }, &waits)
}

/// A KEEPALIVE for an earlier switch: answered by RESET.
pub(crate) fn keepalive_of_another_epoch() -> Vec<u8> {
    let wait = Wait { slot: 1.into(), generation: 1.into(), sequence: 1.into() };
    packet(&Keepalive { counter: counter().into(), ..Keepalive::new(EPOCH + 1, 0) }, &[wait])
}

/// A CANCEL of an unknown client, which is answered to any sender.
pub(crate) fn question(client: u64, sequence: u32) -> Vec<u8> {
    packet(&Cancel { client: client.into(), ..Cancel::new(0, sequence) }, &[TaskName::new(1, 0)])
}

/// A packet of `length` bytes, at least 8, of an unknown version: answered by VERSION, the shortest datagram.
pub(crate) fn of_another_version(length: usize) -> Vec<u8> {
    let mut datagram = probe(1, 1);
    datagram[2] = VERSION + 1;
    datagram.resize(length, 0xee);
    datagram
}

pub(crate) fn operation(datagram: &[u8]) -> Operation {
    Operation::from_number(datagram[3]).unwrap()
}

pub(crate) fn records(datagram: &[u8]) -> u8 {
    datagram[4]
}
