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
    config: TasksConfig,
    pub epoch: u32,
}

const _: () = {
    assert!(CONTROL_AT + size_of::<Control>() as u64 <= KEPT_AT);
    assert!(KEPT_AT + size_of::<Kept>() as u64 <= DESKS_AT);
};

impl Kept {
    pub(super) fn new(config: &TasksConfig, epoch: u32) -> Self {
        Self { magic: MAGIC, layout: LAYOUT, netns: netns(), config: *config, epoch }
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
        if kept.netns != netns() {
            return refused("it serves another network namespace");
        }
        if let Some(difference) = difference(&kept.config, wanted) {
            return refused(&difference);
        }
        if Arena::size(kept.config.state_bytes().next_multiple_of(4096), 0) != arena.bytes() {
            return refused("its size is not that of its bounds");
        }
        Ok(kept)
    }
}

/// The first bound in which two configurations differ.
fn difference(kept: &TasksConfig, wanted: &TasksConfig) -> Option<String> {
    let named = |config: &TasksConfig| {
        [
            ("queue", u64::from(config.queue)),
            ("slots", u64::from(config.slots)),
            ("clients", u64::from(config.clients)),
            ("levels", u64::from(config.levels)),
            ("lease", config.lease_ns),
            ("slot_idle", config.slot_idle_ns),
            ("client_idle", config.client_idle_ns),
        ]
    };
    let time = |name: &str, value: u64| match name {
        "lease" | "slot_idle" | "client_idle" => format!("{} ms", value / 1_000_000),
        _ => value.to_string(),
    };
    let mut pairs = named(kept).into_iter().zip(named(wanted));
    let ((name, was), (_, is)) = pairs.find(|(kept, wanted)| kept != wanted)?;
    Some(format!("its tasks.{name} is {}, and {} is asked for", time(name, was), time(name, is)))
}

fn netns() -> [u64; 2] {
    std::fs::metadata("/proc/thread-self/ns/net").map_or([0; 2], |netns| [netns.dev(), netns.ino()])
}
