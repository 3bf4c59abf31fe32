//! The changes after the `|` of a command.

use super::super::words::{items, number, parse_mask};
use super::context::Context;
use super::names::Endpoint;
use crate::transcript::Every;
use midflight_wire::tasks::SLOT_PLACES;
use std::net::SocketAddr;

pub(super) const FOREIGN_EPOCH: u32 = 0xFFFF_0000;

pub(super) struct Changes {
    pub(super) epoch: u32,
    pub(super) cookie: u64,
    pub(super) counter: u64,
    pub(super) token: Option<u64>,
    pub(super) offers: Option<u8>,
    pub(super) jid: u32,
    /// Of a SUBMIT: place, and patience in milliseconds.
    pub(super) prefers: Option<(u32, u32)>,
    /// Of a REGISTER.
    pub(super) places: [u32; SLOT_PLACES],
    pub(super) bytes: Vec<(usize, u8)>,
    pub(super) resize: isize,
    pub(super) from: Option<SocketAddr>,
    pub(super) every: Option<Every>,
}

pub(super) fn parse(text: &str, sender: &Endpoint, context: &Context<'_>) -> Result<Changes, String> {
    let mut changes = Changes {
        epoch: context.epoch,
        cookie: context.cookie(sender, 0),
        counter: sender.counter.wrapping_add(1),
        token: None,
        offers: None,
        jid: 1,
        prefers: None,
        places: [0; SLOT_PLACES],
        bytes: Vec::new(),
        resize: 0,
        from: None,
        every: None,
    };
    let endpoint = |name| context.names.endpoint(name).ok_or_else(|| format!("{name:?} is nobody"));
    for item in items(text) {
        let words: Vec<&str> = item.split_whitespace().collect();
        match words[..] {
            ["epoch", "foreign"] => changes.epoch = FOREIGN_EPOCH,
            ["epoch", value] => changes.epoch = number(value)?,
            ["cookie", "none"] => changes.cookie = 0,
            ["cookie", "last"] => changes.cookie = context.cookie(sender, 1),
            ["cookie", "old"] => changes.cookie = context.cookie(sender, 2),
            ["cookie", other] => changes.cookie = context.cookie(endpoint(other)?, 0),
            ["counter", "repeat"] => changes.counter = sender.counter,
            ["counter", value] => changes.counter = number(value)?,
            ["token", value] => changes.token = Some(number(value)?),
            ["offers", mask] => changes.offers = Some(parse_mask(mask)?),
            ["jid", value] => changes.jid = number(value)?,
            ["prefers", place, "for", ms] => changes.prefers = Some((number(place)?, number(ms)?)),
            ["places", one] => changes.places = [number(one)?, 0],
            ["places", one, other] => changes.places = [number(one)?, number(other)?],
            ["byte", offset, value] => changes.bytes.push((number(offset)?, number(value)?)),
            ["longer", bytes] => changes.resize = number(bytes)?,
            ["shorter", bytes] => changes.resize = -number::<isize>(bytes)?,
            ["every", "cut"] => changes.every = Some(Every::Cut),
            ["every", "byte", offset] => changes.every = Some(Every::Byte(number(offset)?)),
            ["from", other] => changes.from = Some(endpoint(other)?.address),
            _ => return Err(format!("{item:?} is no change that a datagram can have")),
        }
    }
    Ok(changes)
}
