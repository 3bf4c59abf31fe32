//! Datagrams that clients and executors send.

use midflight_wire::{
    Builder, Header, Keepalive, Operation, Probe, Register, Registered, Retrieve, SlotName, Submit, TaskInfo, Wait,
};
use zerocopy::FromBytes;

/// The switch's epoch in these tests.
pub(crate) const EPOCH: u32 = 7;

pub(crate) fn probe(client: u64, sequence: u32) -> Vec<u8> {
    let mut datagram = Vec::new();
    Builder::new(&mut datagram, &Probe { header: Header::new(Operation::Probe, 0, sequence), client: client.into() });
    datagram
}

pub(crate) fn submit(client: u64, sequence: u32, tasks: u32) -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = Header::new(Operation::Submit, EPOCH, sequence);
    let fixed = Submit { header, client: client.into(), uid: 1.into(), jid: 2.into() };
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
    let fixed = Register { header, executor: executor.into(), first: 0.into(), resources: 0, reserved: [0; 3] };
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

pub(crate) fn retrieve(slots: &[SlotName], sequence: u32) -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = Header::new(Operation::Retrieve, EPOCH, 0);
    let mut builder = Builder::new(&mut datagram, &Retrieve { header, resources: 0, reserved: [0; 3] });
    for name in slots {
        builder.push(&Wait { slot: name.slot, generation: name.generation, sequence: sequence.into() });
    }
    datagram
}

/// A KEEPALIVE of a switch that ran before: answered by the shortest datagram that there is.
pub(crate) fn keepalive_of_another_epoch() -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = Header::new(Operation::Keepalive, EPOCH + 1, 0);
    Builder::new(&mut datagram, &Keepalive { header }).push(&SlotName { slot: 1.into(), generation: 1.into() });
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
