//! What an attacker off the path can send: every packet, from addresses that it knows, with guesses in the place of all that only two
//! parties know.

use crate::check::Craft;
use midflight_wire::Header;
use midflight_wire::reads::{Operation, parse, structures};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::mem::offset_of;

/// What only two parties know: the half of an incarnation (`epoch`) and the whole, a request's number, a cookie (`client`, which is an
/// address behind the switch). And what an attacker writes as it likes: session, SEQ, index, start, echo and times.
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

/// No packet is taken from another address than its sender's, or it is a copy. The memory is that of a second, so that packets of
/// ended sessions come again.
pub(super) const CRAFT: Craft =
    Craft { remembered: 4_096, is_packet, is_forgeable: is_packet, is_guessable: is_packet, guess };

fn is_packet(datagram: &[u8]) -> bool {
    parse(datagram).is_ok()
}

/// The structure that an operation begins with.
const fn structure_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Read | Operation::ReadReply | Operation::Write | Operation::WriteReply => "Request",
        Operation::Hello => "Hello",
        Operation::Heartbeat => "Heartbeat",
        Operation::EndSession => "EndSession",
        Operation::State => "State",
    }
}

/// A field that an attacker writes as it likes keeps its value now and then, as it may be known: the present session's SID, say.
fn guess(random: &mut Pcg64, mut datagram: Vec<u8>) -> Vec<u8> {
    let Some(operation) = datagram.get(3).and_then(|&number| Operation::from_number(number)) else { return datagram };
    // The sequence of a HELLO is the secret of STATE, its answer. Behind the switch each packet has an epoch; before it none has.
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
