//! What an attacker off the path can send: packets as hosts send them, from addresses that it knows, with guesses in the place of all that
//! only two parties know. It does not forge what operators and selectors send each other and to servers: who can do that is inside of the
//! network, and the contract says nothing of it.

use crate::check::Craft;
use midflight_wire::replicas::{Ends, Kind, NetrsRequest, NetrsResponse, Packet, parse};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::mem::offset_of;

/// No packet is taken from another address than its sender's.
pub(super) const CRAFT: Craft = Craft { remembered: 2_048, is_packet, is_forgeable: is_packet, is_guessable, guess };

fn is_packet(datagram: &[u8]) -> bool {
    parse(datagram).is_ok()
}

/// A request that no operator has labelled, a direct one, or any answer.
fn is_guessable(datagram: &[u8]) -> bool {
    match parse(datagram) {
        Ok(Packet::Request(_, ends, _)) => ends.client.port.get() == 0,
        Ok(Packet::ForServer(kind, ..)) => kind == Kind::Direct,
        Ok(Packet::Response(..) | Packet::Cookie(..)) => true,
        Ok(Packet::Version(_)) | Err(_) => false,
    }
}

/// The request's number and the cookie are secret; RSNode id, RV and status are the attacker's to write.
fn guess(random: &mut Pcg64, mut datagram: Vec<u8>) -> Vec<u8> {
    let (ends_at, is_request) = match parse(&datagram) {
        Ok(Packet::Request(..) | Packet::ForServer(..)) => (size_of::<NetrsRequest>(), true),
        Ok(Packet::Response(_, _, status, ..)) => (size_of::<NetrsResponse>() + status.len(), false),
        Ok(Packet::Cookie(start, _)) => (size_of_val(start), false),
        _ => return datagram,
    };
    random.fill(&mut datagram[ends_at + offset_of!(Ends, request)..][..8]);
    if is_request {
        random.fill(&mut datagram[ends_at..][..8]);
        // It asks what it likes.
        random.fill(&mut datagram[ends_at + size_of::<Ends>()..]);
    }
    if random.random_bool(0.5) {
        random.fill(&mut datagram[..2]);
        random.fill(&mut datagram[8..10]);
    }
    if !is_request && ends_at > size_of::<NetrsResponse>() {
        random.fill(&mut datagram[size_of::<NetrsResponse>()..ends_at]);
    }
    datagram
}
