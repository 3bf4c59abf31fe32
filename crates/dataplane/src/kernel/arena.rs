//! The arena as this process sees it: mapped where its map's `map_extra` says, all pages present.

use super::error::KernelError;
use super::layout::{CONTROL_AT, Control, DESK_BYTES, DESKS, DESKS_AT, Desk, STATE_AT};
use std::io;
use std::ptr::NonNull;

/// An arena's addresses start where the low 32 bits are 0, so an offset is the same for both sides.
const ALIGNMENT: usize = 1 << 32;

/// An address where an arena of up to 4 GiB can be mapped. libbpf maps it there at once when it loads the object, so nothing
/// else may be mapped in between: load right away.
pub(super) fn free_address() -> Result<u64, KernelError> {
    let failed = |source| KernelError::Io { what: "find room for the arena in this process".into(), source };
    // SAFETY: a new private mapping without access; it touches nothing that exists.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            2 * ALIGNMENT,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(failed(io::Error::last_os_error()));
    }
    // SAFETY: exactly the mapping made above.
    unsafe { libc::munmap(start, 2 * ALIGNMENT) };
    Ok((start as usize).next_multiple_of(ALIGNMENT) as u64)
}

/// A mapped arena. libbpf unmaps it with its object.
#[derive(Debug)]
pub(super) struct Arena {
    start: NonNull<u8>,
    bytes: u64,
}

// SAFETY: plain memory; who calls into it holds `&mut` of the engine that owns it.
unsafe impl Send for Arena {}
// SAFETY: shared references only read counters that the kernel writes, each in one access.
unsafe impl Sync for Arena {}

impl Arena {
    /// Bytes of an arena for so large a queue and so much behind it: whole pages.
    pub(super) fn size(state_bytes: u64, extra_bytes: u64) -> u64 {
        (STATE_AT + state_bytes + extra_bytes).next_multiple_of(4096)
    }

    /// Where the object's arena of this size was mapped.
    pub(super) fn at(address: u64, bytes: u64) -> Option<Self> {
        NonNull::new(address as *mut u8).map(|start| Self { start, bytes })
    }

    /// Brings every page into being that a program may touch: it cannot do so itself.
    pub(super) fn populate(&self, cpus: u64) -> Result<(), KernelError> {
        let desks_end = DESKS_AT + (1 + cpus).min(DESKS) * DESK_BYTES;
        self.populate_range(CONTROL_AT, desks_end - CONTROL_AT)?;
        self.populate_range(STATE_AT, self.bytes - STATE_AT)
    }

    fn populate_range(&self, from: u64, bytes: u64) -> Result<(), KernelError> {
        // SAFETY: within the mapping.
        let done = unsafe { libc::madvise(self.offset(from).cast(), bytes as usize, libc::MADV_POPULATE_WRITE) };
        if done == 0 {
            return Ok(());
        }
        Err(KernelError::Memory { bytes: self.bytes, source: io::Error::last_os_error() })
    }

    /// The address here of an offset within the arena.
    pub(super) fn offset(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.bytes);
        // SAFETY: offsets are constants of the layout, or were checked against `bytes`.
        unsafe { self.start.as_ptr().add(offset as usize) }
    }

    pub(super) fn control(&self) -> *mut Control {
        self.offset(CONTROL_AT).cast()
    }

    /// Desk 0 is user space's, desk 1 that of CPU 0.
    pub(super) fn desk(&self, number: u64) -> *mut Desk {
        self.offset(DESKS_AT + number.min(DESKS - 1) * DESK_BYTES).cast()
    }

    pub(super) fn state(&self) -> *mut u8 {
        self.offset(STATE_AT)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
