//! Set and delete: at all servers of a key, over TCP.

use super::client::CacheClient;
use super::counters::{Counts, add};
use super::error::{CacheError, FailedServer, ServerError, WriteError};
use super::exchange::Answer;
use super::streams::Outcome;
use midflight_wire::cache::backend::{BackendRequest, VALUE_MAX, write_request};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Fraction of the timeout for deletes after a failed set.
const FORGET_PART: u32 = 4;

impl CacheClient {
    /// Sets a value at all servers of its key. A get returns the application's `flags` with it. The cache forgets it after `expiry`,
    /// rounded up to seconds; `None`: never.
    ///
    /// # Errors
    ///
    /// [`CacheError::Write`] if a server has not taken it. The other servers have the new value; the failed ones are told to delete the
    /// key, because a cache may forget but not return old values for ever.
    pub fn set(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        flags: u32,
        expiry: Option<Duration>,
    ) -> Result<(), CacheError> {
        let (key, value) = (checked(key.as_ref())?, value.as_ref());
        if value.len() > VALUE_MAX {
            return Err(CacheError::TooLong(value.len()));
        }
        let expires_s = expiry.map_or(0, whole_seconds);
        let (outcomes, servers) = self.write_all(key, &BackendRequest::Set { key, value, flags, expires_s })?;
        let (done, mut failed) = sort(&servers, outcomes, &self.shared.counts, |answer| *answer == Answer::Done);
        if failed.is_empty() {
            add(&self.shared.counts.sets);
            return Ok(());
        }
        self.forget(key, &mut failed);
        add(&self.shared.counts.failed_writes);
        Err(WriteError { is_set: true, done, failed }.into())
    }

    /// Removes a key from all its servers. Returns whether one had it.
    ///
    /// # Errors
    ///
    /// [`CacheError::Write`] if a server has not done it and may still return the value.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, CacheError> {
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
        Err(WriteError { is_set: false, done, failed }.into())
    }

    fn write_all(
        &self,
        key: &[u8],
        request: &BackendRequest<'_>,
    ) -> Result<(Vec<Outcome>, Vec<SocketAddr>), CacheError> {
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

pub(super) fn checked(key: &[u8]) -> Result<&[u8], CacheError> {
    if midflight_wire::cache::backend::is_key(key) { Ok(key) } else { Err(CacheError::NoKey(key.len())) }
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
