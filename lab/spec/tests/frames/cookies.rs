//! Cookies in datagrams prove the sender's address (T13).

use crate::frame::bytes;
use crate::shells::{SECRET, TIME, config};
use midflight_dataplane::Cookies;
use midflight_wire::MAGIC;
use midflight_wire::tasks::Operation;
use std::net::SocketAddr;

/// Offset of the identity in SUBMIT, CANCEL, PROBE, REGISTER and COOKIE; its cookie follows.
const IDENTITY: usize = 24;
const COOKIE: usize = 32;
const END: usize = 40;

/// Writes the switch's cookie for this sender, if the datagram has the field.
pub(crate) fn with_cookie(from: SocketAddr, datagram: Vec<u8>) -> Vec<u8> {
    with_cookie_at(TIME, from, datagram)
}

pub(crate) fn with_cookie_at(now_ns: u64, from: SocketAddr, mut datagram: Vec<u8>) -> Vec<u8> {
    if asks_for_cookie(&datagram) {
        let given = Cookies::new(SECRET, config().cookie_ns).give(now_ns, identity(&datagram), from);
        put_cookie(&mut datagram, given);
    }
    datagram
}

/// Whether the switch may demand a cookie for it.
pub(crate) fn asks_for_cookie(datagram: &[u8]) -> bool {
    use Operation::{Cancel, Probe, Register, Submit};
    matches!(operation(datagram), Some(Submit | Cancel | Probe | Register))
}

pub(crate) fn tells_cookie(datagram: &[u8]) -> bool {
    operation(datagram) == Some(Operation::Cookie)
}

pub(crate) fn identity(datagram: &[u8]) -> u64 {
    u64::from_be_bytes(bytes(datagram, IDENTITY))
}

pub(crate) fn cookie(datagram: &[u8]) -> u64 {
    u64::from_be_bytes(bytes(datagram, COOKIE))
}

pub(crate) fn put_cookie(datagram: &mut [u8], cookie: u64) {
    datagram[COOKIE..END].copy_from_slice(&cookie.to_be_bytes());
}

/// `None` without room for a cookie.
fn operation(datagram: &[u8]) -> Option<Operation> {
    let is_ours = datagram.len() >= END && datagram.starts_with(&MAGIC.to_be_bytes());
    is_ours.then(|| Operation::from_number(datagram[3])).flatten()
}
