//! The changes after the `|` of a command.

use super::super::cookie::CookieOf;
use super::super::words::{items, number};
use super::names::Names;
use crate::transcript::Every;
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) from: Option<SocketAddr>,
    pub(super) cookie: CookieOf,
    pub(super) rsnode: Option<u16>,
    pub(super) status: Option<u16>,
    pub(super) is_noted: bool,
    pub(super) bytes: Vec<(usize, u8)>,
    pub(super) resize: isize,
    pub(super) every: Option<Every>,
}

pub(super) fn parse(text: &str, names: &Names) -> Result<Changes, String> {
    let mut changes = Changes::default();
    for item in items(text) {
        let words: Vec<&str> = item.split_whitespace().collect();
        match words[..] {
            ["from", name] => changes.from = Some(names.anybody(name)?),
            ["cookie", name] => {
                changes.cookie = CookieOf::named(name).ok_or_else(|| format!("{item:?} is no change"))?
            }
            ["rsnode", id] => changes.rsnode = Some(number(id)?),
            ["noted"] => changes.is_noted = true,
            ["status", length] => changes.status = Some(number(length)?),
            ["byte", offset, value] => changes.bytes.push((number(offset)?, number(value)?)),
            ["longer", bytes] => changes.resize = number(bytes)?,
            ["shorter", bytes] => changes.resize = -number::<isize>(bytes)?,
            ["every", "cut"] => changes.every = Some(Every::Cut),
            ["every", "byte", offset] => changes.every = Some(Every::Byte(number(offset)?)),
            _ => return Err(format!("{item:?} is no change")),
        }
    }
    Ok(changes)
}
