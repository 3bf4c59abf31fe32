//! What the next process must know before it takes over an arena. It is on a page of the arena itself, which BPF programs do not use, so
//! the two cannot be separated.

use super::arena::Arena;
use super::error::KernelError;
use super::layout::{CONTROL_AT, Control, SCRATCH_AT};
use crate::program::{Bound, SoftProgram};
use std::os::unix::fs::MetadataExt;

/// `MF_KEPT_AT`
const KEPT_AT: u64 = 0x8000;
/// Marks a written page.
const MAGIC: u64 = u64::from_be_bytes(*b"midflght");
/// The most bounds that a program has.
const BOUNDS_MAX: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Kept {
    magic: u64,
    layout: u64,
    /// The served network namespace: a number on a device.
    netns: [u64; 2],
    bounds: [u64; BOUNDS_MAX],
    pub epoch: u32,
    reserved: u32,
}

const _: () = {
    assert!(CONTROL_AT + size_of::<Control>() as u64 <= KEPT_AT);
    assert!(KEPT_AT + size_of::<Kept>() as u64 <= SCRATCH_AT);
};

impl Kept {
    pub(super) fn new<P: SoftProgram>(config: &P::Config, epoch: u32) -> Self {
        let mut bounds = [0; BOUNDS_MAX];
        assert!(P::bounds(config).len() <= BOUNDS_MAX, "a program has more bounds than are kept");
        bounds.iter_mut().zip(P::bounds(config)).for_each(|(kept, (_, bound))| *kept = bound.value());
        Self { magic: MAGIC, layout: P::LAYOUT, netns: netns(), bounds, epoch, reserved: 0 }
    }

    pub(super) fn write(self, arena: &Arena) {
        // SAFETY: the page exists, is aligned, and only user space uses it.
        unsafe { arena.offset(KEPT_AT).cast::<Self>().write(self) };
    }

    pub(super) fn of(arena: &Arena) -> Self {
        // SAFETY: as in `write`; all its fields are integers.
        unsafe { arena.offset(KEPT_AT).cast::<Self>().read() }
    }

    /// Reads the page, if this process can take over the arena.
    pub(super) fn read<P: SoftProgram>(arena: &Arena, wanted: &P::Config) -> Result<Self, KernelError> {
        let kept = Self::of(arena);
        let refused = |why: &str| Err(KernelError::Kept(why.into()));
        if kept.magic != MAGIC || kept.layout != P::LAYOUT {
            return refused("it was laid out by another version of midflight");
        }
        if kept.is_elsewhere() {
            return refused("it serves another network namespace");
        }
        if let Some(difference) = difference(P::NAME, kept.bounds, &P::bounds(wanted)) {
            return refused(&difference);
        }
        if Arena::size(P::state_bytes(wanted).next_multiple_of(4096), 0) != arena.bytes() {
            return refused("its size is not that of its bounds");
        }
        Ok(kept)
    }

    pub(super) fn is_elsewhere(&self) -> bool {
        self.magic == MAGIC && self.netns != netns()
    }
}

/// The first bound in which two configurations differ.
fn difference(program: &str, kept: [u64; BOUNDS_MAX], wanted: &[(&str, Bound)]) -> Option<String> {
    let (kept, (name, bound)) = kept.into_iter().zip(wanted).find(|(kept, (_, bound))| *kept != bound.value())?;
    let kept = bound.with(kept);
    Some(format!("its {program}.{name} is {kept}, and {bound} is asked for"))
}

fn netns() -> [u64; 2] {
    std::fs::metadata("/proc/thread-self/ns/net").map_or([0; 2], |netns| [netns.dev(), netns.ino()])
}
