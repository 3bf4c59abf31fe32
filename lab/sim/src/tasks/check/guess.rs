//! Packets of an attacker off the path: every operation, from known addresses, with guesses in place of all secret
//! fields.

use crate::check::Craft;
use midflight_wire::Header;
use midflight_wire::tasks::{Operation, Packet, Reset, parse, structures};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::mem::offset_of;
use zerocopy::IntoBytes;

/// Fields that only two parties know.
const SECRETS: [&str; 8] = ["client", "cookie", "token", "proof", "identity", "executor", "counter", "generation"];

/// What an attacker knows of the program's packets.
pub(super) const CRAFT: Craft =
    Craft { remembered: 256, is_packet: |datagram| parse(datagram).is_ok(), is_forgeable, is_guessable, guess };

/// Operations with secrets: the structure at their start, and that of their records.
fn structures_of(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::Submit => ("Submit", ""),
        Operation::SubmitAck => ("SubmitAck", ""),
        Operation::Register => ("Register", ""),
        Operation::Registered => ("Registered", "SlotName"),
        Operation::Reset => ("Reset", "Wait"),
        Operation::Retrieve => ("Retrieve", "Wait"),
        Operation::Assign => ("Assign", "Assignment"),
        Operation::Keepalive => ("Keepalive", "Wait"),
        Operation::Release => ("Release", "Leave"),
        Operation::Released => ("Released", "SlotName"),
        Operation::Complete => ("Complete", "Completion"),
        Operation::CompleteAck => ("CompleteAck", "Completed"),
        Operation::Probe => ("Probe", ""),
        Operation::ProbeAck => ("ProbeAck", ""),
        Operation::Cancel => ("Cancel", ""),
        Operation::CancelAck => ("CancelAck", "Holder"),
        Operation::Stop => ("Stop", "RunName"),
        Operation::Cookie => ("Cookie", ""),
        Operation::NoOp => ("NoOp", "Wait"),
    }
}

/// Whether a packet only names slots, whose owners the switch knows. (A client is known by its identity at any
/// address.)
fn is_forgeable(datagram: &[u8]) -> bool {
    let operation = datagram.get(3).and_then(|&number| Operation::from_number(number));
    matches!(operation, Some(Operation::Retrieve | Operation::Keepalive | Operation::Release))
}

/// Whether all secrets of a packet can be located: the results in a COMPLETE have no fixed offsets.
fn is_guessable(datagram: &[u8]) -> bool {
    match parse(datagram) {
        Ok(Packet::Complete(fixed, _)) => fixed.header.count == 1,
        Ok(Packet::Version(_)) | Err(_) => false,
        Ok(_) => true,
    }
}

/// Guesses the secrets. Sequences are not secret, because they count up; nor is an epoch, which stays the same for
/// long.
fn guess(random: &mut Pcg64, mut datagram: Vec<u8>) -> Vec<u8> {
    let Some(operation) = datagram.get(3).and_then(|&number| Operation::from_number(number)) else { return datagram };
    if matches!(operation, Operation::Assign | Operation::Registered) && random.random_bool(0.2) {
        return reset_of_all(random);
    }
    let (fixed, record) = structures_of(operation);
    let records = datagram.get(4).map_or(0, |&count| usize::from(count));
    let structures = structures();
    if random.random_bool(0.5) {
        random.fill(&mut datagram[offset_of!(Header, epoch)..offset_of!(Header, sequence)]);
    }
    let mut from = 0;
    for (name, times) in [(fixed, 1), (record, records)] {
        if name.is_empty() {
            continue;
        }
        let (_, size, fields) = structures.iter().find(|(other, ..)| *other == name).expect("a structure of tasks");
        for _ in 0..times {
            for field in fields.iter().filter(|field| SECRETS.contains(&field.name)) {
                if let Some(bytes) = datagram.get_mut(from + field.offset..from + field.offset + field.size) {
                    random.fill(bytes);
                }
            }
            if let Some(field) = fields.iter().find(|field| field.name == "submission")
                && let Some(last) = datagram.get_mut(from + field.offset + field.size - 1)
            {
                *last = last.wrapping_add(random.random_range(0..4));
            }
            from += size;
        }
    }
    datagram
}

/// Contains no name, so an attacker can guess it for every switch that sends to an executor.
fn reset_of_all(random: &mut Pcg64) -> Vec<u8> {
    let header = Header::new(Operation::Reset, random.random(), 0);
    Reset { header, counter: random.random::<u64>().into() }.as_bytes().to_vec()
}
