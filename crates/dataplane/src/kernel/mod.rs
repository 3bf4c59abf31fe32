//! The soft engine in the kernel: the same C core as BPF, in a BPF arena that this process maps (feature `kernel`).
//!
//! [`KernelTasks`] loads the object and brings the core datagrams by `BPF_PROG_RUN`. `docs/internals/kernel.md` explains
//! the arena, the lock and the two shells.

mod arena;
mod error;
mod layout;
mod object;
mod tasks;

pub use error::KernelError;
pub use layout::SHELL_COUNTS;
pub use tasks::{BenchPacket, KernelTasks, NOW};
