//! The arguments of tasks, at an executor: what is fetched of a pack has the arguments of tasks that probably come next.

use super::fetch::server;
use super::{FetchError, Fetcher};
use crate::driver::lock;
use midflight_wire::{ARGUMENT_BLOB_MAX, BlobRef, PACK_UNIT};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes of parts that are kept.
const KEPT_MAX: usize = 4 << 20;
/// Bytes that are asked for at first, and at most, where the argument is not longer.
const FIRST_WINDOW: u32 = 4 << 10;
const LARGEST_WINDOW: u32 = 64 << 10;
/// A part is judged after so many further ones: until then the tasks around it have come.
const JUDGED_AFTER: usize = 4;
/// Clients whose windows are remembered; with more, all begin anew.
const WINDOWS_MAX: usize = 1_024;

/// A pack: who serves it, and its id.
type Name = (SocketAddr, u64);

/// Any number of threads get arguments through one of these.
#[derive(Debug)]
pub(crate) struct Arguments {
    fetcher: Fetcher,
    parts: Mutex<Parts>,
    /// A fetch has ended.
    ended: Condvar,
    fetches: AtomicU64,
}

/// Parts of packs that have come, and those that are being fetched.
#[derive(Debug, Default)]
struct Parts {
    kept: HashMap<Name, BTreeMap<u32, Part>>,
    /// The oldest first.
    order: VecDeque<(Name, u32)>,
    bytes: usize,
    windows: HashMap<SocketAddr, Window>,
    coming: Vec<(Name, Range<u32>)>,
}

#[derive(Debug)]
struct Part {
    bytes: Vec<u8>,
    /// Of these bytes, those of arguments that were asked for.
    used: usize,
}

/// How much is fetched of one client's packs.
#[derive(Debug)]
struct Window {
    bytes: u32,
    /// The last parts, the oldest first.
    recent: VecDeque<(Name, u32)>,
}

impl Default for Window {
    fn default() -> Self {
        Self { bytes: FIRST_WINDOW, recent: VecDeque::new() }
    }
}

impl Arguments {
    pub(crate) fn new(fetcher: Fetcher) -> Self {
        Self { fetcher, parts: Mutex::default(), ended: Condvar::new(), fetches: AtomicU64::new(0) }
    }

    /// Fetches that were needed so far.
    pub(crate) fn fetches(&self) -> u64 {
        self.fetches.load(Relaxed)
    }

    /// The argument of a task of a client at this address.
    pub(crate) fn get(&self, ip: IpAddr, blob: &BlobRef) -> Result<Vec<u8>, FetchError> {
        let Some((name, range)) = place(ip, blob)? else {
            self.fetches.fetch_add(1, Relaxed);
            return self.fetcher.fetch(ip, blob, ARGUMENT_BLOB_MAX);
        };
        let most = match self.look(name, &range) {
            Found::Here(argument) => return Ok(argument),
            Found::Fetch { most } => most,
        };
        self.fetches.fetch_add(1, Relaxed);
        let fetched = self.fetcher.fetch_part(ip, blob, most);
        let mut parts = lock(&self.parts);
        parts.coming.retain(|(other, coming)| (*other, coming.start) != (name, range.start));
        self.ended.notify_all();
        let length = (range.end - range.start) as usize;
        let argument = fetched.as_ref().map(|bytes| bytes[..length].to_vec()).unwrap_or_default();
        parts.insert(name, range.start, Part { bytes: fetched?, used: padded(&range) });
        Ok(argument)
    }

    /// Waits for what another thread is fetching.
    fn look(&self, name: Name, range: &Range<u32>) -> Found {
        let mut parts = lock(&self.parts);
        loop {
            if let Some(argument) = parts.find(name, range) {
                return Found::Here(argument);
            }
            if !parts.is_coming(name, range) {
                break;
            }
            parts = self.ended.wait(parts).unwrap_or_else(PoisonError::into_inner);
        }
        let most = parts.window(name.0).max(range.end - range.start);
        parts.coming.push((name, range.start..range.start.saturating_add(most)));
        Found::Fetch { most }
    }

    /// The argument as [`Self::get`] has it, if no fetch is needed.
    pub(crate) fn at_hand(&self, ip: IpAddr, blob: &BlobRef) -> Option<Vec<u8>> {
        let (name, range) = place(ip, blob).ok()??;
        lock(&self.parts).find(name, &range)
    }
}

/// What a thread finds that needs an argument.
enum Found {
    Here(Vec<u8>),
    /// It must fetch at most so many bytes; others wait for them.
    Fetch {
        most: u32,
    },
}

/// Where in a pack an argument is; `None` if it is a blob of its own.
fn place(ip: IpAddr, blob: &BlobRef) -> Result<Option<(Name, Range<u32>)>, FetchError> {
    let Some(offset) = blob.offset() else { return Ok(None) };
    let length = blob.length.get();
    if length > LARGEST_WINDOW {
        return Err(FetchError::TooLarge { length, max: LARGEST_WINDOW });
    }
    Ok(Some(((server(ip, blob), blob.id.get()), offset..offset + length)))
}

/// Bytes of an argument with those up to where the next one begins.
fn padded(range: &Range<u32>) -> usize {
    (range.end - range.start).next_multiple_of(PACK_UNIT) as usize
}

impl Parts {
    fn find(&mut self, name: Name, range: &Range<u32>) -> Option<Vec<u8>> {
        let (begin, part) = self.kept.get_mut(&name)?.range_mut(..=range.start).next_back()?;
        let argument = part.bytes.get((range.start - begin) as usize..(range.end - begin) as usize)?;
        part.used += padded(range);
        Some(argument.to_vec())
    }

    fn is_coming(&self, name: Name, range: &Range<u32>) -> bool {
        self.coming
            .iter()
            .any(|(other, coming)| *other == name && coming.contains(&range.start) && coming.end >= range.end)
    }

    /// How much to ask this client for.
    fn window(&self, server: SocketAddr) -> u32 {
        self.windows.get(&server).map_or(FIRST_WINDOW, |window| window.bytes)
    }

    /// Learns from a part that has come: more is asked for where the arguments of an earlier part were needed, less where they were
    /// other executors'.
    fn note(&mut self, name: Name, begin: u32) {
        if self.windows.len() >= WINDOWS_MAX && !self.windows.contains_key(&name.0) {
            self.windows.clear();
        }
        let window = self.windows.entry(name.0).or_default();
        window.recent.push_back((name, begin));
        if window.recent.len() <= JUDGED_AFTER {
            return;
        }
        let judged = window.recent.pop_front();
        let Some(part) = judged.and_then(|(name, begin)| self.kept.get(&name)?.get(&begin)) else { return };
        let length = part.bytes.len();
        if 2 * part.used >= length {
            window.bytes = window.bytes.max(2 * length as u32).min(LARGEST_WINDOW);
        } else if 8 * part.used <= length {
            window.bytes = window.bytes.min(length as u32 / 2).max(1);
        }
    }

    fn insert(&mut self, name: Name, begin: u32, part: Part) {
        let bytes = part.bytes.len();
        match self.kept.entry(name).or_default().insert(begin, part) {
            Some(before) => self.bytes -= before.bytes.len(),
            None => self.order.push_back((name, begin)),
        }
        self.bytes += bytes;
        self.note(name, begin);
        while self.bytes > KEPT_MAX {
            self.remove_oldest();
        }
    }

    fn remove_oldest(&mut self) {
        let Some((name, begin)) = self.order.pop_front() else { return };
        let Some(parts) = self.kept.get_mut(&name) else { return };
        self.bytes -= parts.remove(&begin).map_or(0, |part| part.bytes.len());
        if parts.is_empty() {
            self.kept.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests;
