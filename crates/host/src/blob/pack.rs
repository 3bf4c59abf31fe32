//! Packs: the small arguments of many tasks in one blob, so that executors fetch many at once.

use super::{BlobLease, BlobStore, StoreFull};
use crate::driver::lock;
use midflight_wire::{BlobRef, PACK_UNIT};
use std::sync::{Arc, Mutex, Weak};

/// Longest packed argument; for longer ones a fetch of their own costs little.
pub(crate) const PACKED_MAX: usize = 4_096;
/// Size of a pack. One long task keeps the whole pack.
const PACK_BYTES: usize = 64 << 10;
const UNIT: usize = PACK_UNIT as usize;
const _: () = assert!(PACK_BYTES / UNIT < u16::MAX as usize && PACKED_MAX <= PACK_BYTES);

/// Arguments in sequence, each at a multiple of [`PACK_UNIT`]. Append-only.
#[derive(Debug, Default)]
pub(super) struct Pack(Mutex<Vec<u8>>);

impl Pack {
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Appends an argument, padded with zeros; returns its offset.
    fn append(&self, argument: &[u8], padded: usize) -> usize {
        let mut bytes = lock(&self.0);
        let (offset, end) = (bytes.len(), bytes.len() + padded);
        if bytes.capacity() < end {
            // Doubles, so that few arguments take little memory.
            let capacity = (2 * bytes.capacity()).clamp(end, PACK_BYTES);
            bytes.reserve_exact(capacity - offset);
        }
        bytes.extend_from_slice(argument);
        bytes.resize(end, 0);
        offset
    }

    pub(super) fn part(&self, offset: u32, most: u32) -> Option<Vec<u8>> {
        let bytes = lock(&self.0);
        let rest = bytes.get(offset as usize..)?;
        let part = &rest[..rest.len().min(most as usize)];
        (!part.is_empty()).then(|| part.to_vec())
    }
}

#[derive(Debug)]
pub(crate) struct Packs {
    store: Arc<BlobStore>,
    open: Mutex<Option<(Weak<BlobLease>, Arc<Pack>)>>,
}

impl Packs {
    pub(crate) fn new(store: Arc<BlobStore>) -> Self {
        Self { store, open: Mutex::default() }
    }

    /// Keeps an argument until the lease is dropped. `port` is the server's.
    pub(crate) fn add(&self, argument: &[u8], port: u16) -> Result<(Arc<BlobLease>, BlobRef), StoreFull> {
        debug_assert!((1..=PACKED_MAX).contains(&argument.len()));
        let mut open = lock(&self.open);
        let found = open.as_ref().and_then(|(lease, pack)| Some((lease.upgrade()?, Arc::clone(pack))));
        let padded = argument.len().next_multiple_of(UNIT);
        let has_room = |(_, pack): &(_, Arc<Pack>)| pack.len() + padded <= PACK_BYTES;
        let (lease, pack) = found.filter(has_room).unwrap_or_else(|| {
            let pack = Arc::new(Pack::default());
            (Arc::new(self.store.keep_pack(&pack)), pack)
        });
        self.store.reserve(padded)?;
        let offset = pack.append(argument, padded);
        let reference = BlobRef {
            length: (argument.len() as u32).into(),
            at: u16::try_from(offset / UNIT + 1).unwrap_or(u16::MAX).into(), // asserted above
            ..lease.reference(port)
        };
        *open = Some((Arc::downgrade(&lease), pack));
        Ok((lease, reference))
    }
}
