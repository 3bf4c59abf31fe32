//! Fetches the arguments of an executor's tasks, and prefetches those of tasks that probably come next.

mod along;
mod parts;

use super::fetch::server;
use super::{FetchError, Fetcher};
use crate::driver::lock;
use along::CameAlong;
use midflight_tasks::blob::TAG_BYTES;
use midflight_wire::{ARGUMENT_BLOB_MAX, BlobRef};
use parts::{Found, LARGEST_WINDOW, Name, Parts};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Counts of the arguments of an executor's tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArgumentCounts {
    /// Fetches of arguments; one fetch brings many small ones.
    pub fetches: u64,
    /// Arguments pushed by clients that saved a fetch.
    pub along_used: u64,
    /// Pushed arguments without a task within a second, or without room, such as copies.
    pub along_unused: u64,
    /// Pushed arguments that were forged or damaged, and then fetched.
    pub along_forged: u64,
}

/// Any number of threads may use it.
#[derive(Debug)]
pub(crate) struct Arguments {
    fetcher: Fetcher,
    along: Mutex<CameAlong>,
    parts: Mutex<Parts>,
    /// Notified when a fetch has ended.
    ended: Condvar,
    fetches: AtomicU64,
    /// The client that was last warned of.
    warned_of: Mutex<Option<SocketAddr>>,
}

impl Arguments {
    pub(crate) fn new(fetcher: Fetcher) -> Self {
        Self {
            fetcher,
            along: Mutex::default(),
            parts: Mutex::default(),
            ended: Condvar::new(),
            fetches: AtomicU64::new(0),
            warned_of: Mutex::default(),
        }
    }

    pub(crate) fn counts(&self) -> ArgumentCounts {
        let along = lock(&self.along);
        ArgumentCounts {
            fetches: self.fetches.load(Relaxed),
            along_used: along.used,
            along_unused: along.unused,
            along_forged: along.forged,
        }
    }

    /// Keeps an encrypted argument that a client pushed before the task.
    pub(crate) fn came_along(&self, client: SocketAddr, name: u64, tag: [u8; TAG_BYTES], argument: Vec<u8>) {
        lock(&self.along).keep(Instant::now(), client, name, tag, argument);
    }

    /// The argument of a task. Takes at most as long as two fetches: another thread's and its own.
    pub(crate) fn get(&self, client: SocketAddr, blob: &BlobRef) -> Result<Vec<u8>, FetchError> {
        let ip = client.ip();
        let Some((name, range)) = place(ip, blob)? else {
            self.fetches.fetch_add(1, Relaxed);
            return self.fetcher.fetch(ip, blob, ARGUMENT_BLOB_MAX);
        };
        if let Some(argument) = lock(&self.along).take(Instant::now(), client, blob) {
            return Ok(argument);
        }
        let (most, number) = match self.look(name, &range) {
            Found::Here(argument) => return Ok(argument),
            Found::Fetch { most, number } => (most, number),
        };
        self.fetches.fetch_add(1, Relaxed);
        let fetched = self.fetcher.fetch_part(ip, blob, most);
        let mut parts = lock(&self.parts);
        if parts.has_come(number) {
            self.ended.notify_all();
        }
        let bytes = fetched?;
        let argument = bytes[..range.len()].to_vec();
        parts.insert(name, &range, bytes);
        Ok(argument)
    }

    /// Warns once per client: a client that has ended may leave thousands of tasks.
    pub(crate) fn warn_not_fetched(&self, client: SocketAddr, error: &FetchError) {
        if self.is_to_warn_of(client) {
            tracing::warn!("an argument was not fetched: {error} (said once for all tasks of the client {client})");
        }
    }

    fn is_to_warn_of(&self, client: SocketAddr) -> bool {
        lock(&self.warned_of).replace(client) != Some(client)
    }

    /// Waits for another thread's fetch, once. If that fails, the waiting threads fetch concurrently.
    fn look(&self, name: Name, range: &Range<u32>) -> Found {
        let mut parts = lock(&self.parts);
        if let Some(argument) = parts.find(name, range) {
            return Found::Here(argument);
        }
        let Some(number) = parts.coming_with(name, range) else { return parts.begin(name, range) };
        parts.waiting += 1;
        let come = self.ended.wait_while(parts, |parts| parts.is_coming(number));
        let mut parts = come.unwrap_or_else(PoisonError::into_inner);
        parts.waiting -= 1;
        parts.find(name, range).map_or_else(|| Found::alone(range), Found::Here)
    }

    pub(crate) fn at_hand(&self, client: SocketAddr, blob: &BlobRef) -> Option<Vec<u8>> {
        let (name, range) = place(client.ip(), blob).ok()??;
        let along = lock(&self.along).take(Instant::now(), client, blob);
        along.or_else(|| lock(&self.parts).find(name, &range))
    }
}

/// Place of an argument in a pack; `None` if it is its own blob.
fn place(ip: IpAddr, blob: &BlobRef) -> Result<Option<(Name, Range<u32>)>, FetchError> {
    let Some(offset) = blob.offset() else { return Ok(None) };
    let length = blob.length.get();
    if !(1..=LARGEST_WINDOW).contains(&length) {
        return Err(FetchError::NotPacked { length });
    }
    Ok(Some(((server(ip, blob), blob.id.get()), offset..offset + length)))
}

#[cfg(test)]
mod tests;
