//! The arena in this process: mapped at its map's `map_extra`, with all pages present.

use super::error::KernelError;
use super::layout::{
    CONTROL_AT, Control, NEXT_HOPS, NEXT_HOPS_AT, NextHop, SCRATCH_AT, SCRATCH_BYTES, SCRATCHES, STATE_AT, Scratch,
};
use libbpf_rs::{MapCore, MapHandle, MapInfo, MapType};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// An arena's address has 0 in its low 32 bits, so offsets are the same for this process and the kernel.
const ALIGNMENT: u64 = 1 << 32;
/// Preferred address of arenas. The next process maps a kept arena at the same address, so it is far from where Linux randomly places
/// programs, heaps and libraries.
const USUAL: u64 = 0x1000_0000_0000;
/// Arenas of one process that fit there.
const USUAL_PLACES: u64 = 64;
/// Memory left to other processes.
const MARGIN_BYTES: u64 = 64 << 20;

/// A mapped arena, freed with its last map, mapping and program.
#[derive(Debug)]
pub(super) struct Arena {
    map: MapHandle,
    place: Place,
    scratches: u64,
}

// SAFETY: plain memory; every call into it needs `&mut` of the engine that owns it.
unsafe impl Send for Arena {}
// SAFETY: shared references only read counters that the kernel writes, each in one access.
unsafe impl Sync for Arena {}

impl Arena {
    /// Bytes of an arena for this state and the extra bytes after it: whole pages.
    pub(super) fn size(state_bytes: u64, extra_bytes: u64) -> u64 {
        (STATE_AT + state_bytes + extra_bytes).next_multiple_of(4096)
    }

    pub(super) fn create(bytes: u64) -> Result<Self, KernelError> {
        let too_large = |source| KernelError::Memory { bytes, source };
        let pages = u32::try_from(bytes / 4096).map_err(|_| too_large(io::ErrorKind::OutOfMemory.into()))?;
        let needed = bytes - STATE_AT + MARGIN_BYTES;
        if bytes > ALIGNMENT || available_memory().is_some_and(|available| available < needed) {
            return Err(too_large(io::ErrorKind::OutOfMemory.into()));
        }
        let place = Place::free(bytes)?;
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            map_flags: libbpf_sys::BPF_F_MMAPABLE,
            map_extra: place.start.as_ptr() as u64,
            ..Default::default()
        };
        let map = MapHandle::create(MapType::Arena, Some("arena"), 0, 0, pages, &options);
        let map = map.map_err(|error| match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => KernelError::Privileges,
            libbpf_rs::ErrorKind::OutOfMemory => too_large(io::ErrorKind::OutOfMemory.into()),
            _ => KernelError::too_old(&error.to_string()),
        })?;
        let arena = Self { map, place, scratches: scratches()? };
        arena.map_in()?;
        arena.populate()?;
        Ok(arena)
    }

    pub(super) fn open(map: MapHandle) -> Result<Self, KernelError> {
        let failed = |error: libbpf_rs::Error| KernelError::libbpf("look at the kept arena", &error);
        let info = MapInfo::new(map.as_fd()).map_err(failed)?.info;
        let bytes = u64::from(info.max_entries) * 4096;
        if map.map_type() != MapType::Arena || info.map_extra == 0 || bytes <= STATE_AT {
            return Err(KernelError::Kept("it holds no arena".into()));
        }
        let place = Place::at(info.map_extra, bytes)
            .map_err(|source| KernelError::Io { what: "map the kept arena at its address".into(), source })?;
        let arena = Self { map, place, scratches: scratches()? };
        arena.map_in()?;
        arena.populate()?;
        Ok(arena)
    }

    /// Scratch areas with pages: user space's, and one for each processor.
    pub(super) fn scratches(&self) -> u64 {
        self.scratches
    }

    fn map_in(&self) -> Result<(), KernelError> {
        let (start, fd) = (self.place.start.as_ptr().cast(), self.map.as_fd().as_raw_fd());
        let (access, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: it replaces nothing but our own reservation.
        let mapped = unsafe { libc::mmap(start, self.place.bytes as usize, access, how, fd, 0) };
        if mapped == start {
            return Ok(());
        }
        Err(KernelError::Io { what: "map the arena".into(), source: io::Error::last_os_error() })
    }

    /// Touches every page that a BPF program may use: the program cannot allocate pages itself.
    fn populate(&self) -> Result<(), KernelError> {
        let scratch_end = SCRATCH_AT + self.scratches * SCRATCH_BYTES;
        self.populate_range(CONTROL_AT, scratch_end - CONTROL_AT)?;
        self.populate_range(NEXT_HOPS_AT, NEXT_HOPS * size_of::<NextHop>() as u64)?;
        self.populate_range(STATE_AT, self.bytes() - STATE_AT)
    }

    fn populate_range(&self, from: u64, bytes: u64) -> Result<(), KernelError> {
        // SAFETY: within the mapping.
        let done = unsafe { libc::madvise(self.offset(from).cast(), bytes as usize, libc::MADV_POPULATE_WRITE) };
        if done == 0 {
            return Ok(());
        }
        Err(KernelError::Memory { bytes: self.bytes(), source: io::Error::last_os_error() })
    }

    /// The address in this process of an offset in the arena.
    pub(super) fn offset(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.bytes());
        // SAFETY: offsets are constants of the layout, or were checked against `bytes`.
        unsafe { self.place.start.as_ptr().add(offset as usize) }
    }

    pub(super) fn control(&self) -> *mut Control {
        self.offset(CONTROL_AT).cast()
    }

    /// Scratch area 0 is user space's, 1 that of CPU 0.
    pub(super) fn scratch(&self, number: u64) -> *mut Scratch {
        self.offset(SCRATCH_AT + number.min(SCRATCHES - 1) * SCRATCH_BYTES).cast()
    }

    pub(super) fn state(&self) -> *mut u8 {
        self.offset(STATE_AT)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.place.bytes
    }
}

impl AsFd for Arena {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

/// Reserved addresses of this process, released on drop.
#[derive(Debug)]
struct Place {
    start: NonNull<u8>,
    bytes: u64,
}

impl Place {
    /// Reserves a place for an arena of this many bytes.
    fn free(bytes: u64) -> Result<Self, KernelError> {
        let usual = (0..USUAL_PLACES).find_map(|number| Self::at(USUAL + number * ALIGNMENT, bytes).ok());
        usual.map_or_else(|| Self::anywhere(bytes), Ok)
    }

    /// Reserves this address; an error if it is in use.
    fn at(address: u64, bytes: u64) -> io::Result<Self> {
        let start = reserve(address, bytes, libc::MAP_FIXED_NOREPLACE)?;
        let place = Self { start, bytes };
        if start.as_ptr() as u64 == address { Ok(place) } else { Err(io::ErrorKind::AddrInUse.into()) }
    }

    /// Reserves any free place, if the preferred addresses do not exist on this machine.
    fn anywhere(bytes: u64) -> Result<Self, KernelError> {
        let failed = |source| KernelError::Io { what: "find room for the arena in this process".into(), source };
        let start = reserve(0, 2 * ALIGNMENT, 0).map_err(failed)?;
        let around = Self { start, bytes: 2 * ALIGNMENT };
        let address = (start.as_ptr() as u64).next_multiple_of(ALIGNMENT);
        drop(around);
        Self::at(address, bytes).map_err(failed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // SAFETY: exactly the reservation, and no pointer into it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes as usize) };
    }
}

fn reserve(address: u64, bytes: u64, how: libc::c_int) -> io::Result<NonNull<u8>> {
    let how = how | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new private mapping without access; it replaces nothing.
    let start = unsafe { libc::mmap(address as *mut _, bytes as usize, libc::PROT_NONE, how, -1, 0) };
    match NonNull::new(start.cast::<u8>()) {
        Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(start),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Scratch areas for this machine: user space's, and one for each possible processor number.
fn scratches() -> Result<u64, KernelError> {
    let failed = KernelError::io("read /sys/devices/system/cpu/possible");
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").map_err(failed)?;
    match scratches_of(&possible) {
        Some(scratches) if scratches <= SCRATCHES => Ok(scratches),
        Some(scratches) => Err(KernelError::Refused(format!(
            "this machine numbers {} processors, more than {}",
            scratches - 1,
            SCRATCHES - 1
        ))),
        None => Err(KernelError::Refused(format!("the kernel names its processors {:?}", possible.trim()))),
    }
}

/// The same for a list of ranges, such as `0-3,8`.
fn scratches_of(possible: &str) -> Option<u64> {
    let last = possible.trim().rsplit([',', '-']).next()?;
    last.parse::<u64>().ok()?.checked_add(2)
}

/// Available memory in bytes, if the system reports it.
fn available_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches(" kB").parse().ok().map(|kilobytes: u64| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::scratches_of;

    #[test]
    fn processors_are_numbered_with_gaps() {
        let all = ["0", "0-1\n", "0-3,8", "0,2-5\n", "", "0-"].map(scratches_of);
        assert_eq!(all, [Some(2), Some(3), Some(10), Some(7), None, None]);
    }
}
