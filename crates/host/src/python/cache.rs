//! Functions and shared arguments that were fetched from clients, for all workers. One thread fetches a blob; others that need
//! the same one wait for it.

use crate::blob::Fetcher;
use crate::driver::lock;
use midflight_wire::{BlobRef, RESULT_BLOB_MAX};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Longer blobs are in memory that workers map.
pub(super) const INLINE_MAX: usize = 64 << 10;

/// Who has it, and its name there. An id is random: nobody can give others' blobs another content.
type Name = (IpAddr, u16, u64);

/// A blob that is here.
#[derive(Debug)]
pub(super) struct Blob {
    /// Its name between executor and workers.
    pub(super) number: u32,
    pub(super) length: u64,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// A sealed memfd.
    Memory(OwnedFd),
}

/// At most so many bytes, but for what tasks use.
pub(super) struct Cache {
    fetcher: Fetcher,
    max_bytes: u64,
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Name, Entry>,
    bytes: u64,
    next_number: u32,
    /// Counts uses.
    uses: u64,
}

enum Entry {
    /// By another thread.
    Fetching,
    Here {
        blob: Arc<Blob>,
        used: u64,
    },
}

/// Where a blob is.
enum Found {
    Here(Arc<Blob>),
    /// Another thread fetches it.
    Coming,
    Nowhere,
}

impl Cache {
    pub(super) fn new(max_bytes: u64, progress_timeout: Duration) -> Self {
        Self { fetcher: Fetcher::new(progress_timeout), max_bytes, kept: Mutex::default(), changed: Condvar::new() }
    }

    /// The blob, fetched if it is not here; else why it cannot be had.
    pub(super) fn get(&self, ip: IpAddr, reference: &BlobRef) -> Result<Arc<Blob>, String> {
        let name = (ip, reference.port.get(), reference.id.get());
        let mut kept = lock(&self.kept);
        loop {
            match kept.find(name) {
                Found::Here(blob) => return Ok(blob),
                Found::Nowhere => break,
                Found::Coming => kept = self.changed.wait(kept).unwrap_or_else(PoisonError::into_inner),
            }
        }
        kept.entries.insert(name, Entry::Fetching);
        drop(kept);
        let fetched = self.fetch(ip, reference);
        let mut kept = lock(&self.kept);
        kept.entries.remove(&name);
        let blob = fetched.map(|content| kept.keep(name, reference, content, self.max_bytes));
        self.changed.notify_all();
        blob
    }

    fn fetch(&self, ip: IpAddr, reference: &BlobRef) -> Result<Content, String> {
        let max = u32::try_from(self.max_bytes).unwrap_or(RESULT_BLOB_MAX);
        let bytes = self.fetcher.fetch(ip, reference, max).map_err(|error| error.to_string())?;
        if bytes.len() <= INLINE_MAX {
            return Ok(Content::Bytes(bytes));
        }
        memory(&bytes).map(Content::Memory).map_err(|error| format!("no memory for {} bytes: {error}", bytes.len()))
    }
}

impl Kept {
    fn find(&mut self, name: Name) -> Found {
        self.uses += 1;
        match self.entries.get_mut(&name) {
            None => Found::Nowhere,
            Some(Entry::Fetching) => Found::Coming,
            Some(Entry::Here { blob, used }) => {
                *used = self.uses;
                Found::Here(Arc::clone(blob))
            }
        }
    }

    fn keep(&mut self, name: Name, reference: &BlobRef, content: Content, max_bytes: u64) -> Arc<Blob> {
        let blob = Arc::new(Blob { number: self.next_number, length: reference.length.get().into(), content });
        self.next_number = self.next_number.wrapping_add(1);
        self.bytes += blob.length;
        self.entries.insert(name, Entry::Here { blob: Arc::clone(&blob), used: self.uses });
        while self.bytes > max_bytes && self.drop_oldest() {}
        blob
    }

    /// Drops the blob that was used least recently, of those that no task uses; whether there was one.
    fn drop_oldest(&mut self) -> bool {
        let unused = self.entries.iter().filter_map(|(name, entry)| match entry {
            Entry::Here { blob, used } if Arc::strong_count(blob) == 1 => Some((*used, *name)),
            _ => None,
        });
        let Some((_, name)) = unused.min() else { return false };
        if let Some(Entry::Here { blob, .. }) = self.entries.remove(&name) {
            self.bytes -= blob.length;
        }
        true
    }
}

/// Memory with these bytes, which nobody can change.
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
        let cache = Cache::new(100_020, Duration::from_secs(5));
        let get = |place: usize| cache.get(ip, &references[place]).unwrap();
        assert!(matches!(&get(0).content, Content::Bytes(bytes) if bytes == &[7; 10]));
        assert!(matches!(&get(1).content, Content::Memory(_)));
        let [first, second] = [get(0).number, get(1).number];
        assert_eq!([first, second, store.counters().served as u32], [0, 1, 2], "both were there already");
        get(0);
        assert_eq!(get(2).number, 2);
        assert_eq!(get(0).number, 0, "it was used after the other one, which has made room");
        drop(leases);
        assert!(cache.get(ip, &references[1]).unwrap_err().contains("not kept"));
        assert_eq!(get(2).number, 2);
    }
}
