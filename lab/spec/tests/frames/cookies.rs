//! Cookies in datagrams: who carries the right one receives what is sent to its address (T13).

use crate::frame::bytes;
use crate::shells::{SECRET, TIME, config};
use midflight_dataplane::Cookies;
use midflight_wire::{MAGIC, Operation};
use std::net::SocketAddr;

/// Where SUBMIT, CANCEL, PROBE, REGISTER and COOKIE have an identity, and behind it its cookie.
const IDENTITY: usize = 24;
const COOKIE: usize = 32;
const END: usize = 40;

/// A datagram with the cookie that the switch gives its sender, where it has a field for one.
pub(crate) fn with_cookie(from: SocketAddr, datagram: Vec<u8>) -> Vec<u8> {
    with_cookie_at(TIME, from, datagram)
}

/// The same at another time.
pub(crate) fn with_cookie_at(now_ns: u64, from: SocketAddr, mut datagram: Vec<u8>) -> Vec<u8> {
    if asks_for_cookie(&datagram) {
        let given = Cookies::new(SECRET, config().cookie_ns).give(now_ns, identity(&datagram), from);
        put_cookie(&mut datagram, given);
    }
    datagram
}

/// Whether its sender has to show a cookie, at least at times.
pub(crate) fn asks_for_cookie(datagram: &[u8]) -> bool {
    use Operation::{Cancel, Probe, Register, Submit};
    matches!(operation(datagram), Some(Submit | Cancel | Probe | Register))
}

/// Whether it is the switch's COOKIE.
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

/// Of a datagram of ours that has room for a cookie.
fn operation(datagram: &[u8]) -> Option<Operation> {
    let is_ours = datagram.len() >= END && datagram.starts_with(&MAGIC.to_be_bytes());
    is_ours.then(|| Operation::from_number(datagram[3])).flatten()
}
