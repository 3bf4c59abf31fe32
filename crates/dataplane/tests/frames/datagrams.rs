//! Datagrams that clients and executors send.

use midflight_wire::{
    Builder, Cancel, Header, Keepalive, Operation, Probe, Register, Registered, Retrieve, SlotName, Submit, TaskInfo,
    TaskName, VERSION, Wait,
};
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::FromBytes;

/// The switch's epoch in these tests.
pub(crate) const EPOCH: u32 = 7;

pub(crate) fn probe(client: u64, sequence: u32) -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = Header::new(Operation::Probe, 0, sequence);
    Builder::new(&mut datagram, &Probe { header, client: client.into(), cookie: 0.into() });
    datagram
}

pub(crate) fn submit(client: u64, sequence: u32, tasks: u32) -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = Header::new(Operation::Submit, EPOCH, sequence);
    let (client, cookie, token) = (client.into(), 0.into(), 3.into());
    let fixed = Submit { header, client, cookie, token, uid: 1.into(), jid: 2.into() };
    let mut builder = Builder::new(&mut datagram, &fixed);
    for tid in 0..tasks {
        builder.push(&TaskInfo {
            tid: tid.into(),
            function: 9.into(),
            priority: 1,
            resources: 0,
            argument_length: 16,
            attempt: 0,
            argument: *b"sixteen of bytes",
        });
    }
    datagram
}

pub(crate) fn register(executor: u64, slots: u8) -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = Header::new(Operation::Register, EPOCH, 1);
    let (executor, cookie) = (executor.into(), 0.into());
    let fixed = Register { header, executor, cookie, first: 0.into(), resources: 0, reserved: [0; 3] };
    Builder::new(&mut datagram, &fixed).set_count(slots);
    datagram
}

/// The slots that a REGISTERED names.
pub(crate) fn registered(answer: &[u8]) -> Vec<SlotName> {
    let (fixed, rest) = Registered::ref_from_prefix(answer).unwrap();
    let names = <[SlotName]>::ref_from_bytes(rest).unwrap();
    assert_eq!((fixed.header.operation, names.len()), (Operation::Registered as u8, usize::from(fixed.header.count)));
    names.to_vec()
}

/// Later than all before it.
fn counter() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    1 + LAST.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn retrieve(slots: &[SlotName], sequence: u32) -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = Header::new(Operation::Retrieve, EPOCH, 0);
    let fixed = Retrieve { header, counter: counter().into(), resources: 0, reserved: [0; 7] };
    let mut builder = Builder::new(&mut datagram, &fixed);
    for name in slots {
        builder.push(&Wait { slot: name.slot, generation: name.generation, sequence: sequence.into() });
    }
    datagram
}

/// A KEEPALIVE for a switch that ran before: answered by RESET.
pub(crate) fn keepalive_of_another_epoch() -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = Header::new(Operation::Keepalive, EPOCH + 1, 0);
    let wait = Wait { slot: 1.into(), generation: 1.into(), sequence: 1.into() };
    Builder::new(&mut datagram, &Keepalive { header, counter: counter().into() }).push(&wait);
    datagram
}

/// What anybody may ask, and is answered by whoever the frame came from: a CANCEL of a client that the switch does not know.
pub(crate) fn question(client: u64, sequence: u32) -> Vec<u8> {
    let mut datagram = Vec::new();
    let fixed = Cancel { header: Header::new(Operation::Cancel, 0, sequence), client: client.into(), cookie: 0.into() };
    Builder::new(&mut datagram, &fixed).push(&TaskName { submission: 1.into(), index: 0, reserved: [0; 3] });
    datagram
}

/// A packet of so many bytes, at least 8, of a version that the switch does not speak: answered by VERSION, the shortest
/// datagram that there is.
pub(crate) fn of_another_version(length: usize) -> Vec<u8> {
    let mut datagram = probe(1, 1);
    datagram[2] = VERSION + 1;
    datagram.resize(length, 0xee);
    datagram
}

/// The operation of a datagram.
pub(crate) fn operation(datagram: &[u8]) -> Operation {
    Operation::from_number(datagram[3]).unwrap()
}

/// How many records a datagram has.
pub(crate) fn records(datagram: &[u8]) -> u8 {
    datagram[4]
}
