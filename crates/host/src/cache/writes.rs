//! Set and delete: at all servers of a key, over TCP.

use super::client::CacheClient;
use super::counters::{Counts, add};
use super::error::{CacheError, FailedServer, ServerError, WriteError};
use super::exchange::Answer;
use super::streams::Outcome;
use crate::error::Error;
use midflight_wire::cache::backend::{BackendRequest, KEY_MAX, VALUE_MAX, is_key, write_request};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Options of [`CacheClient::set_with`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    flags: u32,
    expiry: Option<Duration>,
}

impl SetOptions {
    /// The application's number, which a get returns with the value. Default 0.
    #[must_use]
    pub fn flags(mut self, flags: u32) -> Self {
        self.flags = flags;
        self
    }

    /// Time after which the cache forgets the value, rounded up to seconds. Default: never.
    #[must_use]
    pub fn expiry(mut self, expiry: Duration) -> Self {
        self.expiry = Some(expiry);
        self
    }
}

/// Fraction of the timeout for deletes after a failed set.
const FORGET_PART: u32 = 4;

impl CacheClient {
    /// Sets a value at all servers of its key, without an expiry.
    ///
    /// # Errors
    ///
    /// As [`set_with`](Self::set_with).
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.set_with(key, value, SetOptions::default())
    }

    /// Like [`set`](Self::set), with options.
    ///
    /// # Errors
    ///
    /// [`CacheError::Write`] if a server has not taken it. The other servers have the new value; the failed ones are told to delete the
    /// key, because a cache may forget but not return old values for ever.
    pub fn set_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: SetOptions) -> Result<(), Error> {
        let (key, value) = (checked(key.as_ref())?, value.as_ref());
        if value.len() > VALUE_MAX {
            let length = value.len();
            let long =
                format!("the value has {length} bytes: it may have {VALUE_MAX}; keep it in parts under several keys");
            return Err(Error::Invalid(long));
        }
        let SetOptions { flags, expiry } = options;
        let expires_s = expiry.map_or(0, whole_seconds);
        let (outcomes, servers) = self.write_all(key, &BackendRequest::Set { key, value, flags, expires_s })?;
        let (done, mut failed) = sort(&servers, outcomes, &self.shared.counts, |answer| *answer == Answer::Done);
        if failed.is_empty() {
            add(&self.shared.counts.sets);
            return Ok(());
        }
        self.forget(key, &mut failed);
        add(&self.shared.counts.failed_writes);
        Err(CacheError::from(WriteError { is_set: true, done, failed }).into())
    }

    /// Removes a key from all its servers. Returns whether one had it.
    ///
    /// # Errors
    ///
    /// [`CacheError::Write`] if a server has not done it and may still return the value.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = checked(key.as_ref())?;
        let (outcomes, servers) = self.write_all(key, &BackendRequest::Delete { key })?;
        let had_it = outcomes.contains(&Ok(Answer::Done));
        let is_gone = |answer: &Answer| matches!(answer, Answer::Done | Answer::Missing);
        let (done, failed) = sort(&servers, outcomes, &self.shared.counts, is_gone);
        if failed.is_empty() {
            add(&self.shared.counts.deletes);
            return Ok(had_it);
        }
        add(&self.shared.counts.failed_writes);
        Err(CacheError::from(WriteError { is_set: false, done, failed }).into())
    }

    fn write_all(&self, key: &[u8], request: &BackendRequest<'_>) -> Result<(Vec<Outcome>, Vec<SocketAddr>), Error> {
        let servers = self.shared.keyspace.servers(self.shared.keyspace.group(key)).to_vec();
        let mut bytes = Vec::new();
        write_request(request, &mut bytes);
        let outcomes = self.shared.streams.ask(&servers, &bytes, Instant::now() + self.shared.timeout)?;
        Ok((outcomes, servers))
    }

    /// Prevents servers that missed a set from returning the old value.
    fn forget(&self, key: &[u8], failed: &mut [FailedServer]) {
        let mut bytes = Vec::new();
        write_request(&BackendRequest::Delete { key }, &mut bytes);
        let servers: Vec<SocketAddr> = failed.iter().map(|failed| failed.server).collect();
        let until = Instant::now() + self.shared.timeout / FORGET_PART;
        let Ok(outcomes) = self.shared.streams.ask(&servers, &bytes, until) else { return };
        for (failed, outcome) in failed.iter_mut().zip(outcomes) {
            failed.has_forgotten = matches!(outcome, Ok(Answer::Done | Answer::Missing));
            self.shared.counts.forgotten.fetch_add(failed.has_forgotten.into(), Relaxed);
        }
    }
}

fn sort(
    servers: &[SocketAddr],
    outcomes: Vec<Outcome>,
    counts: &Counts,
    is_done: impl Fn(&Answer) -> bool,
) -> (Vec<SocketAddr>, Vec<FailedServer>) {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for (&server, outcome) in servers.iter().zip(outcomes) {
        let why = match outcome {
            Ok(answer) if is_done(&answer) => {
                done.push(server);
                continue;
            }
            Ok(_) => {
                counts.server_failed(&ServerError::Unfit);
                ServerError::Unfit
            }
            Err(why) => why,
        };
        failed.push(FailedServer { server, why, has_forgotten: false });
    }
    (done, failed)
}

pub(super) fn checked(key: &[u8]) -> Result<&[u8], Error> {
    if is_key(key) {
        return Ok(key);
    }
    let length = key.len();
    Err(Error::Invalid(format!(
        "this cannot be a key ({length} bytes): a key has 1 to {KEY_MAX} bytes, none of them a space or a control character"
    )))
}

/// At least 1, because 0 means never.
fn whole_seconds(expiry: Duration) -> u32 {
    let seconds = expiry.as_secs().saturating_add(u64::from(expiry.subsec_nanos() > 0));
    u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_never_rounded_to_never() {
        let of_ms = |ms| whole_seconds(Duration::from_millis(ms));
        assert_eq!([of_ms(0), of_ms(1), of_ms(1_000), of_ms(1_001)], [1, 1, 1, 2]);
        assert_eq!(whole_seconds(Duration::MAX), u32::MAX);
    }
}
