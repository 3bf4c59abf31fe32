//! What an attacker off the path can send: packets of hosts, from known addresses, with guesses in place of secrets. It
//! does not forge packets between operators, selectors and servers: these need access to the network's inside, which
//! the contract excludes.

use crate::check::Craft;
use midflight_wire::cache::{Ends, Kind, NetrsRequest, NetrsResponse, Packet, parse};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::mem::offset_of;

/// Every packet is forgeable: none may be accepted from another address than its sender's.
pub(super) const CRAFT: Craft = Craft { remembered: 2_048, is_packet, is_forgeable: is_packet, is_guessable, guess };

fn is_packet(datagram: &[u8]) -> bool {
    parse(datagram).is_ok()
}

/// A request without a label, a direct one, or any answer.
fn is_guessable(datagram: &[u8]) -> bool {
    match parse(datagram) {
        Ok(Packet::Request(_, ends, _)) => ends.client.port.get() == 0,
        Ok(Packet::ForServer(kind, ..)) => kind == Kind::Direct,
        Ok(Packet::Response(..) | Packet::Cookie(..)) => true,
        Ok(Packet::Version(_)) | Err(_) => false,
    }
}

/// Secret: the request's number and the cookie. The attacker chooses RSNode id, RV and status.
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
        // An arbitrary question.
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
