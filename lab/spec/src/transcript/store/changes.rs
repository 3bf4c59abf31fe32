//! The changes after the `|` of a command.

use super::super::cookie::CookieOf;
use super::super::words::{items, number, parse_duration};
use super::names::Names;
use crate::transcript::Every;
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) from: Option<SocketAddr>,
    pub(super) cookie: CookieOf,
    pub(super) set: Option<u16>,
    pub(super) incarnation: Option<u64>,
    pub(super) kgroup_bits: Option<u8>,
    /// Age of a HEARTBEAT's echo, in nanoseconds.
    pub(super) echo_age: Option<u64>,
    pub(super) echo_ahead: bool,
    pub(super) leader: Option<u8>,
    pub(super) is_idle: bool,
    pub(super) is_any: bool,
    pub(super) epoch: Option<u32>,
    pub(super) slot: Option<u8>,
    pub(super) is_without_client: bool,
    /// The direct-return flag: requested by a client, or set or cleared in a replica's reply.
    pub(super) is_direct: Option<bool>,
    pub(super) is_unserved: bool,
    pub(super) bytes: Vec<(usize, u8)>,
    pub(super) resize: isize,
    pub(super) every: Option<Every>,
}

pub(super) fn parse(text: &str, names: &Names) -> Result<Changes, String> {
    let mut changes = Changes::default();
    for item in items(text) {
        change(&mut changes, item, names)?;
    }
    Ok(changes)
}

fn change(changes: &mut Changes, item: &str, names: &Names) -> Result<(), String> {
    let words: Vec<&str> = item.split_whitespace().collect();
    match words[..] {
        ["from", name] => changes.from = Some(names.anybody(name)?),
        ["cookie", name] => changes.cookie = CookieOf::named(name).ok_or_else(|| format!("{item:?} is no change"))?,
        ["set", set] => changes.set = Some(number(set)?),
        ["incarnation", value] => changes.incarnation = Some(number(value)?),
        ["bits", value] => changes.kgroup_bits = Some(number(value)?),
        ["echo", "ahead"] => changes.echo_ahead = true,
        ["echo", age] => changes.echo_age = Some(parse_duration(age)?.as_nanos() as u64),
        ["leader", slot] => changes.leader = Some(number(slot)?),
        ["idle"] => changes.is_idle = true,
        ["any"] => changes.is_any = true,
        ["epoch", value] => changes.epoch = Some(number(value)?),
        ["slot", value] => changes.slot = Some(number(value)?),
        ["direct"] => changes.is_direct = Some(true),
        ["not", "direct"] => changes.is_direct = Some(false),
        ["unserved"] => changes.is_unserved = true,
        ["no", "client"] => changes.is_without_client = true,
        ["byte", offset, value] => changes.bytes.push((number(offset)?, number(value)?)),
        ["longer", bytes] => changes.resize = number(bytes)?,
        ["shorter", bytes] => changes.resize = -number::<isize>(bytes)?,
        ["every", "cut"] => changes.every = Some(Every::Cut),
        ["every", "byte", offset] => changes.every = Some(Every::Byte(number(offset)?)),
        _ => return Err(format!("{item:?} is no change")),
    }
    Ok(())
}
