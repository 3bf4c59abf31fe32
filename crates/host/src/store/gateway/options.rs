//! Options of commands: conditions and times.

use super::super::{Change, Condition, Expiry, Update};
use bytes::Bytes;
use midflight_resp::{Call, Reply, number};
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND: i64 = 1_000;

/// A unit of time, and whether it counts from 1970.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    ms: i64,
    is_absolute: bool,
}

pub(super) const SECONDS: Clock = Clock { ms: SECOND, is_absolute: false };
pub(super) const MILLISECONDS: Clock = Clock { ms: 1, is_absolute: false };
pub(super) const UNIX_SECONDS: Clock = Clock { ms: SECOND, is_absolute: true };
pub(super) const UNIX_MILLISECONDS: Clock = Clock { ms: 1, is_absolute: true };

impl Clock {
    fn of_option(option: &[u8]) -> Option<Self> {
        Some(match option {
            b"EX" => SECONDS,
            b"PX" => MILLISECONDS,
            b"EXAT" => UNIX_SECONDS,
            b"PXAT" => UNIX_MILLISECONDS,
            _ => return None,
        })
    }

    /// Milliseconds from now; negative in the past. `None`: more than 64 bits.
    fn until(self, time: i64) -> Option<i64> {
        let ms = time.checked_mul(self.ms)?;
        if self.is_absolute { ms.checked_sub(now_ms()) } else { Some(ms) }
    }

    /// Of a time that a key has left, rounded.
    pub(super) fn show(self, left_ms: u64) -> i64 {
        let left = i64::try_from(left_ms).unwrap_or(i64::MAX);
        let ms = if self.is_absolute { left.saturating_add(now_ms()) } else { left };
        ms.saturating_add(self.ms / 2) / self.ms
    }
}

#[expect(clippy::disallowed_methods, reason = "clients name times since 1970")]
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// An expiry that a value gets together with it: at least 1, but a time since 1970 may have passed.
pub(super) fn expiry(call: &Call, clock: Clock, time: &[u8]) -> Result<Expiry, Reply> {
    let time = number(time)?;
    let invalid = || Reply::error(format!("invalid expire time in '{}' command", call.name().to_ascii_lowercase()));
    let ms = clock.until(time).filter(|_| time > 0).ok_or_else(invalid)?;
    Ok(Expiry::After(ms.max(0).unsigned_abs()))
}

/// The value and the options of SET, as an update.
pub(super) fn set(call: &Call, value: &Bytes, options: &[Bytes]) -> Result<Update, Reply> {
    let mut update = Update { change: Change::Set(value.to_vec()), ..Update::default() };
    let (mut condition, mut expires) = (None, None);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let option = option.to_ascii_uppercase();
        let former = match option.as_slice() {
            b"NX" => condition.replace(Condition::Absent).map(drop),
            b"XX" => condition.replace(Condition::Present).map(drop),
            b"GET" => {
                update.returns = true;
                None
            }
            b"KEEPTTL" => expires.replace(Expiry::Keep).map(drop),
            option => {
                let (clock, time) = Clock::of_option(option).zip(options.next()).ok_or_else(syntax)?;
                expires.replace(expiry(call, clock, time)?).map(drop)
            }
        };
        if former.is_some() {
            return Err(syntax());
        }
    }
    update.condition = condition.unwrap_or_default();
    update.expiry = expires.unwrap_or(Expiry::Never);
    Ok(update)
}

/// The options of GETEX; `None`: the expiry stays.
pub(super) fn get_and_expire(call: &Call, options: &[Bytes]) -> Result<Option<Update>, Reply> {
    let upper = |option: &Bytes| option.to_ascii_uppercase();
    let expiry = match options {
        [] => return Ok(None),
        [option] if upper(option) == b"PERSIST" => Expiry::Never,
        [option, time] => expiry(call, Clock::of_option(&upper(option)).ok_or_else(syntax)?, time)?,
        _ => return Err(syntax()),
    };
    Ok(Some(Update { condition: Condition::Present, expiry, returns: true, ..Update::default() }))
}

/// The arguments of EXPIRE and its kin after the key. A time in the past removes the key.
pub(super) fn expire(call: &Call, clock: Clock, time: &Bytes, options: &[Bytes]) -> Result<Update, Reply> {
    let invalid = || Reply::error(format!("invalid expire time in '{}' command", call.name().to_ascii_lowercase()));
    let ms = clock.until(number(time)?).ok_or_else(invalid)?;
    let options: Vec<Vec<u8>> = options.iter().map(|option| option.to_ascii_uppercase()).collect();
    let has = |name: &[u8]| options.iter().any(|option| option == name);
    if let Some(other) = options.iter().find(|option| ![&b"NX"[..], b"XX", b"GT", b"LT"].contains(&&option[..])) {
        return Err(Reply::error(format!("Unsupported option {}", other.escape_ascii())));
    }
    let condition = match (has(b"NX"), has(b"XX"), has(b"GT"), has(b"LT")) {
        (_, _, true, true) => return Err(Reply::error("GT and LT options at the same time are not compatible")),
        (true, xx, gt, lt) if xx || gt || lt => {
            return Err(Reply::error("NX and XX, GT or LT options at the same time are not compatible"));
        }
        (false, true, false, true) => return Err(Reply::error("XX together with LT is not supported")),
        (true, ..) => Condition::Lasting,
        (_, _, true, _) => Condition::Later,
        (_, _, _, true) => Condition::Earlier,
        (_, true, ..) => Condition::Expiring,
        _ => Condition::Present,
    };
    let change = if ms > 0 { Change::Keep } else { Change::Remove };
    Ok(Update { condition, change, expiry: Expiry::After(ms.max(0).unsigned_abs()), returns: false })
}

pub(super) fn syntax() -> Reply {
    Reply::error("syntax error")
}
