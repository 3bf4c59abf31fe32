//! What the next process must know of an arena before it takes it over. It lies in the arena, on a page that programs leave
//! alone, so that it cannot be apart from what it speaks of.

use super::arena::Arena;
use super::error::KernelError;
use super::layout::{CONTROL_AT, Control, DESKS_AT};
use crate::TasksConfig;
use std::os::unix::fs::MetadataExt;

/// `MF_KEPT_AT`
const KEPT_AT: u64 = 0x8000;
/// Says that the rest was written to its end.
const MAGIC: u64 = u64::from_be_bytes(*b"midflght");
/// A hash of what the C sources say of the layout: the build script's.
const LAYOUT: u64 = match u64::from_str_radix(env!("MIDFLIGHT_LAYOUT"), 16) {
    Ok(hash) => hash,
    Err(_) => panic!("the build script writes a hexadecimal number"),
};

/// The page's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Kept {
    magic: u64,
    layout: u64,
    /// The network namespace that is served: a number on a device.
    netns: [u64; 2],
    bounds: [u64; BOUNDS.len()],
    pub epoch: u32,
    reserved: u32,
}

/// Bounds and times, by their names in the configuration; times are in nanoseconds.
const BOUNDS: [&str; 8] = ["queue", "slots", "clients", "levels", "lease", "slot_idle", "client_idle", "cookie"];
/// The first of the times.
const LEASE: usize = 4;

const _: () = {
    assert!(CONTROL_AT + size_of::<Control>() as u64 <= KEPT_AT);
    assert!(KEPT_AT + size_of::<Kept>() as u64 <= DESKS_AT);
};

impl Kept {
    pub(super) fn new(config: &TasksConfig, epoch: u32) -> Self {
        Self { magic: MAGIC, layout: LAYOUT, netns: netns(), bounds: bounds(config), epoch, reserved: 0 }
    }

    pub(super) fn write(self, arena: &Arena) {
        // SAFETY: the page is there, aligned, and user space's alone.
        unsafe { arena.offset(KEPT_AT).cast::<Self>().write(self) };
    }

    /// What is written there.
    pub(super) fn of(arena: &Arena) -> Self {
        // SAFETY: as in `write`; all its fields are integers.
        unsafe { arena.offset(KEPT_AT).cast::<Self>().read() }
    }

    /// The same, if this process can take such an arena over.
    pub(super) fn read(arena: &Arena, wanted: &TasksConfig) -> Result<Self, KernelError> {
        let kept = Self::of(arena);
        let refused = |why: &str| Err(KernelError::Kept(why.into()));
        if kept.magic != MAGIC || kept.layout != LAYOUT {
            return refused("it was laid out by another version of midflight");
        }
        if kept.is_elsewhere() {
            return refused("it serves another network namespace");
        }
        if let Some(difference) = difference(kept.bounds, bounds(wanted)) {
            return refused(&difference);
        }
        if Arena::size(wanted.state_bytes().next_multiple_of(4096), 0) != arena.bytes() {
            return refused("its size is not that of its bounds");
        }
        Ok(kept)
    }

    /// Whether it serves another network namespace than ours.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.magic == MAGIC && self.netns != netns()
    }
}

fn bounds(config: &TasksConfig) -> [u64; BOUNDS.len()] {
    let counts = [config.queue, config.slots, config.clients, config.levels].map(u64::from);
    let [queue, slots, clients, levels] = counts;
    let times = [config.lease_ns, config.slot_idle_ns, config.client_idle_ns, config.cookie_ns];
    let [lease, slot_idle, client_idle, cookie] = times;
    [queue, slots, clients, levels, lease, slot_idle, client_idle, cookie]
}

/// The first bound in which two configurations differ.
fn difference(kept: [u64; BOUNDS.len()], wanted: [u64; BOUNDS.len()]) -> Option<String> {
    let at = (0..BOUNDS.len()).find(|&at| kept[at] != wanted[at])?;
    let written = |value: u64| if at < LEASE { value.to_string() } else { format!("{} ms", value / 1_000_000) };
    Some(format!("its tasks.{} is {}, and {} is asked for", BOUNDS[at], written(kept[at]), written(wanted[at])))
}

fn netns() -> [u64; 2] {
    std::fs::metadata("/proc/thread-self/ns/net").map_or([0; 2], |netns| [netns.dev(), netns.ino()])
}
