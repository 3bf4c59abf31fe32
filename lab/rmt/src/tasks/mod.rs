//! The tasks program as a pipeline can run it (the laws in `docs/internals/asic.md`): the cluster's task queue, in registers.

#[cfg(feature = "check")]
pub mod check;
pub mod published;
mod room;
pub mod safe;

/// Maximum entries of all levels: the million that the thesis on Bolt (chapter 4) expects of newer switches. A target may have room for
/// fewer.
pub const ENTRIES_MAX: u32 = 1 << 20;
