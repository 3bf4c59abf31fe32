//! What an attacker off the path can send: every packet, from known addresses, with guesses in place of all secrets.

use crate::check::Craft;
use midflight_wire::Header;
use midflight_wire::store::{Operation, parse, structures};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::mem::offset_of;

/// Secrets: an incarnation and its half (`epoch`), a request's number, a cookie (`client`, which is an address behind
/// the switch). And fields that an attacker sets freely: session, SEQ, index, start, echo and times.
const GUESSED: [&str; 13] = [
    "request",
    "client",
    "incarnation",
    "sid",
    "seq",
    "index",
    "start",
    "echo",
    "ended",
    "now",
    "lease",
    "replicas",
    "flags",
];

/// Every packet is forgeable: none may be accepted from another address than its sender's unless it is a copy. Remembers a second, so that
/// packets of ended sessions are replayed.
pub(super) const CRAFT: Craft =
    Craft { remembered: 4_096, is_packet, is_forgeable: is_packet, is_guessable: is_packet, guess };

fn is_packet(datagram: &[u8]) -> bool {
    parse(datagram).is_ok()
}

const fn structure_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Read | Operation::ReadReply | Operation::Write | Operation::WriteReply => "Request",
        Operation::Hello => "Hello",
        Operation::Heartbeat => "Heartbeat",
        Operation::EndSession => "EndSession",
        Operation::State => "State",
    }
}

/// Sometimes keeps a field that an attacker may know, such as the current SID.
fn guess(random: &mut Pcg64, mut datagram: Vec<u8>) -> Vec<u8> {
    let Some(operation) = datagram.get(3).and_then(|&number| Operation::from_number(number)) else { return datagram };
    // A HELLO's sequence is the secret of STATE, its answer. Packets have an epoch only behind the switch.
    let has_epoch = datagram.get(offset_of!(Header, epoch)..offset_of!(Header, sequence)).is_some_and(|e| e != [0; 4]);
    if has_epoch {
        random.fill(&mut datagram[offset_of!(Header, epoch)..offset_of!(Header, sequence)]);
    }
    if matches!(operation, Operation::Hello | Operation::State) {
        random.fill(&mut datagram[offset_of!(Header, sequence)..][..4]);
    }
    let Some((_, _, fields)) = structures().into_iter().find(|(name, ..)| *name == structure_of(operation)) else {
        return datagram;
    };
    for field in fields.iter().filter(|field| GUESSED.contains(&field.name)) {
        let is_secret = matches!(field.name, "request" | "client" | "incarnation");
        if let Some(bytes) = datagram.get_mut(field.offset..field.offset + field.size)
            && (is_secret || random.random_bool(0.5))
        {
            random.fill(bytes);
        }
    }
    datagram
}
