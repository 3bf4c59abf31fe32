//! Functions and shared arguments fetched from clients, for all workers. One thread fetches a blob while others wait. If that fails, one of
//! them retries; then all give up: blobs may be large, and a client that has left must not occupy slot after slot.

use super::counts::{Counters, count};
use super::memory::{Memory, Reserved};
use crate::blob::Fetcher;
use crate::driver::lock;
use crate::tasks::cancellation::CancellationToken;
use midflight_wire::tasks::{BlobRef, RESULT_BLOB_MAX};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Longer blobs are in shared memory that workers map.
pub(super) const INLINE_MAX: usize = 64 << 10;

/// Server and id. Ids are random, so no client can replace another's content.
type Name = (IpAddr, u16, u64);

#[derive(Debug)]
pub(super) struct Blob {
    pub(super) number: u32,
    pub(super) length: u64,
    pub(super) content: Content,
    /// Also held by workers that map the content.
    pub(super) reserved: Arc<Reserved>,
}

#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// A sealed memfd.
    Memory(OwnedFd),
}

/// Most blobs kept; bounds many small functions.
const ENTRIES_MAX: usize = 65_536;
/// How often a thread that waits for another's fetch checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Most fetches by others that a thread waits for.
const OTHERS_MAX: u32 = 2;

/// Holds at most [`ENTRIES_MAX`] blobs, apart from those in use.
pub(super) struct Cache {
    fetcher: Fetcher,
    memory: Arc<Memory>,
    counters: Arc<Counters>,
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Name, Entry>,
    /// Cached blobs, least recently used first.
    by_use: BTreeMap<u64, Name>,
    next_number: u32,
    fetches: u64,
    /// Counts uses.
    uses: u64,
}

enum Entry {
    /// Number of another thread's fetch.
    Fetching(u64),
    Here {
        blob: Arc<Blob>,
        used: u64,
    },
}

enum Found {
    Here(Arc<Blob>),
    /// Number of another thread's fetch.
    Coming(u64),
    Nowhere,
}

/// A fetch in progress. Dropping it wakes the waiting threads.
struct Fetch<'a> {
    cache: &'a Cache,
    name: Name,
}

impl Cache {
    pub(super) fn new(memory: Arc<Memory>, progress_timeout: Duration, counters: Arc<Counters>) -> Self {
        let fetcher = Fetcher::new(progress_timeout);
        Self { fetcher, memory, counters, kept: Mutex::default(), changed: Condvar::new() }
    }

    /// The blob, fetched if necessary, or why it cannot be had.
    pub(super) fn get(
        &self,
        ip: IpAddr,
        reference: &BlobRef,
        cancellation: &CancellationToken,
    ) -> Result<Arc<Blob>, String> {
        let name = (ip, reference.port.get(), reference.id.get());
        let mut kept = lock(&self.kept);
        let (mut waits_for, mut failed) = (None, 0);
        loop {
            let coming = match kept.find(name) {
                Found::Here(blob) => return Ok(blob),
                Found::Nowhere => None,
                Found::Coming(fetch) => Some(fetch),
            };
            if waits_for.is_some() && waits_for != coming {
                failed += 1;
            }
            if failed == OTHERS_MAX {
                return Err(format!("it is not here, and {failed} fetches by other tasks have failed"));
            }
            if coming.is_none() {
                break;
            }
            if cancellation.is_cancelled() {
                return Err("cancelled".to_owned());
            }
            waits_for = coming;
            kept = self.changed.wait_timeout(kept, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
        kept.begin(name);
        drop(kept);
        let fetch = Fetch { cache: self, name };
        let content = self.fetch(ip, reference).inspect_err(|_| count(&self.counters.blobs_not_fetched))?;
        count(&self.counters.blobs_fetched);
        Ok(fetch.keep(reference, content))
    }

    /// Number of evicted blobs; workers may hold some of these.
    pub(super) fn drops(&self) -> u64 {
        self.counters.blobs_dropped.load(Ordering::Relaxed)
    }

    /// Evicts the least recently used blob that no task uses; `false` if there is none.
    pub(super) fn drop_oldest(&self) -> bool {
        let dropped = lock(&self.kept).take_oldest();
        self.counters.blobs_dropped.fetch_add(dropped.is_some().into(), Ordering::Relaxed);
        dropped.is_some()
    }

    fn fetch(&self, ip: IpAddr, reference: &BlobRef) -> Result<Content, String> {
        let max = u32::try_from(self.memory.max()).unwrap_or(RESULT_BLOB_MAX);
        let bytes = self.fetcher.fetch(ip, reference, max).map_err(|error| error.to_string())?;
        if bytes.len() <= INLINE_MAX {
            return Ok(Content::Bytes(bytes));
        }
        memory(&bytes).map(Content::Memory).map_err(|error| format!("no memory for {} bytes: {error}", bytes.len()))
    }
}

impl Fetch<'_> {
    fn keep(self, reference: &BlobRef, content: Content) -> Arc<Blob> {
        let length = reference.length.get().into();
        let mut kept = lock(&self.cache.kept);
        let blob = kept.keep(self.name, length, content, self.cache.memory.reserve(length));
        let is_full = kept.by_use.len() > ENTRIES_MAX;
        drop(kept);
        if is_full {
            self.cache.drop_oldest();
        }
        blob
    }
}

impl Drop for Fetch<'_> {
    fn drop(&mut self) {
        let mut kept = lock(&self.cache.kept);
        if let Some(Entry::Fetching(_)) = kept.entries.get(&self.name) {
            kept.entries.remove(&self.name); // the fetch failed
        }
        drop(kept);
        self.cache.changed.notify_all();
    }
}

impl Kept {
    fn find(&mut self, name: Name) -> Found {
        match self.entries.get_mut(&name) {
            None => Found::Nowhere,
            Some(Entry::Fetching(fetch)) => Found::Coming(*fetch),
            Some(Entry::Here { blob, used }) => {
                self.by_use.remove(used);
                self.uses += 1;
                *used = self.uses;
                self.by_use.insert(*used, name);
                Found::Here(Arc::clone(blob))
            }
        }
    }

    fn begin(&mut self, name: Name) {
        self.fetches += 1;
        self.entries.insert(name, Entry::Fetching(self.fetches));
    }

    fn keep(&mut self, name: Name, length: u64, content: Content, reserved: Reserved) -> Arc<Blob> {
        let blob = Arc::new(Blob { number: self.next_number, length, content, reserved: Arc::new(reserved) });
        self.next_number = self.next_number.wrapping_add(1);
        self.uses += 1;
        self.entries.insert(name, Entry::Here { blob: Arc::clone(&blob), used: self.uses });
        self.by_use.insert(self.uses, name);
        blob
    }

    fn take_oldest(&mut self) -> Option<Arc<Blob>> {
        let is_unused = |name: &Name| match self.entries.get(name) {
            Some(Entry::Here { blob, .. }) => Arc::strong_count(blob) == 1,
            _ => false,
        };
        let (used, name) = self.by_use.iter().find(|(_, name)| is_unused(name)).map(|(used, name)| (*used, *name))?;
        self.by_use.remove(&used);
        match self.entries.remove(&name) {
            Some(Entry::Here { blob, .. }) => Some(blob),
            _ => None,
        }
    }
}

fn memory(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("midflight-blob", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::{BlobOptions, BlobServer, BlobStore};
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn a_blob_is_fetched_once_and_the_oldest_makes_room() {
        let store = BlobStore::new(BlobOptions::default());
        let server = BlobServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Arc::clone(&store), false).unwrap();
        let ip = Ipv4Addr::LOCALHOST.into();
        let leases: Vec<_> =
            [10, 100_000, 20].map(|length| store.keep(Arc::new(vec![7; length]), Duration::ZERO).unwrap()).into();
        let references: Vec<_> = leases.iter().map(|lease| lease.reference(server.port())).collect();
        let (counters, never) = (Arc::<Counters>::default(), CancellationToken::never());
        let memory = Memory::new(100_020);
        let cache = Cache::new(Arc::clone(&memory), Duration::from_secs(60), Arc::clone(&counters));
        let get = |place: usize| {
            let found = cache.get(ip, &references[place], &never).unwrap();
            while memory.is_exceeded() && cache.drop_oldest() {}
            found
        };
        assert!(matches!(&get(0).content, Content::Bytes(bytes) if bytes == &[7; 10]));
        assert!(matches!(&get(1).content, Content::Memory(_)));
        let [first, second] = [get(0).number, get(1).number];
        assert_eq!([first, second, store.counters().served as u32], [0, 1, 2], "both were there already");
        get(0);
        assert_eq!(get(2).number, 2);
        assert_eq!(get(0).number, 0, "it was used after the other one, which has made room");
        drop(leases);
        assert!(cache.get(ip, &references[1], &never).unwrap_err().contains("not kept"));
        assert_eq!(get(2).number, 2);
        let counts = counters.read();
        assert_eq!([counts.blobs_fetched, counts.blobs_not_fetched, counts.blobs_dropped], [3, 1, 1]);
        assert_eq!(cache.drops(), 1);
    }

    /// The client has ended; another process has its port, accepts connections and says nothing.
    #[test]
    fn t8_a_client_that_is_gone_occupies_all_slots_for_two_fetches_and_not_one_after_the_other() {
        let silent = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = silent.local_addr().unwrap().port();
        let reference = BlobRef { id: 7.into(), length: 10.into(), port: port.into(), reserved: 0.into() };
        let (counters, never) = (Arc::<Counters>::default(), CancellationToken::never());
        let cache = Cache::new(Memory::new(1 << 20), Duration::from_millis(500), Arc::clone(&counters));
        let begin = std::sync::Barrier::new(16);
        let failures: Vec<String> = std::thread::scope(|scope| {
            let get = || {
                begin.wait();
                cache.get(Ipv4Addr::LOCALHOST.into(), &reference, &never).unwrap_err()
            };
            let slots: Vec<_> = (0..16).map(|_| scope.spawn(get)).collect();
            slots.into_iter().map(|slot| slot.join().unwrap()).collect()
        });
        assert_eq!(counters.read().blobs_not_fetched, 2);
        assert_eq!(failures.iter().filter(|why| why.contains("by other tasks")).count(), 14, "{failures:?}");
    }

    #[test]
    fn small_blobs_are_bounded_in_number_and_what_tasks_use_stays() {
        let mut kept = Kept::default();
        let name = |id: u64| (Ipv4Addr::LOCALHOST.into(), 1, id);
        let memory = Memory::new(100);
        let mut keep = |id| kept.keep(name(id), 1, Content::Bytes(vec![0]), memory.reserve(1));
        let used = keep(0);
        (1..ENTRIES_MAX as u64).for_each(|id| drop(keep(id)));
        assert!(kept.take_oldest().is_some());
        assert_eq!([kept.entries.len(), kept.by_use.len()], [ENTRIES_MAX - 1; 2]);
        assert!(matches!(kept.find(name(0)), Found::Here(_)), "a task uses it");
        assert!(matches!(kept.find(name(1)), Found::Nowhere));
        assert!(matches!(kept.find(name(2)), Found::Here(_)));
        drop(used);
        assert!((1..ENTRIES_MAX).all(|_| kept.take_oldest().is_some()));
        assert!(kept.take_oldest().is_none() && kept.by_use.is_empty());
        let _all = memory.reserve(100);
        assert!(!memory.is_exceeded(), "nobody else has any");
    }

    #[test]
    fn a_fetch_that_panics_lets_others_go_on() {
        let cache = Cache::new(Memory::new(1), Duration::from_secs(60), Arc::default());
        let name = (Ipv4Addr::LOCALHOST.into(), 1, 1);
        let panics = std::thread::scope(|scope| {
            let fetch = || {
                lock(&cache.kept).begin(name);
                let _fetch = Fetch { cache: &cache, name };
                panic!("planted");
            };
            scope.spawn(fetch).join()
        });
        assert!(panics.is_err());
        assert!(matches!(lock(&cache.kept).find(name), Found::Nowhere));
    }
}
