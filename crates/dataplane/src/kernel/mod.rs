//! The soft engine in the kernel: the C core as BPF, in a BPF arena that this process maps (feature `kernel`).
//!
//! A switch runs a [`KernelEngine`]: a program attached to interfaces by XDP and TC. [`Kernel`] is the program alone, called by
//! `BPF_PROG_RUN`. `docs/internals/kernel.md` explains the arena, the lock, XDP and TC.
//!
//! | file | subject |
//! |---|---|
//! | `object`, `program` | loads and calls the BPF programs |
//! | `arena`, `layout`, `kept` | the memory shared with this process, and its layout |
//! | `interface`, `link`, `attach` | interfaces, and programs on them |
//! | `pins` | programs and memory that outlive the process |
//! | `handover`, `next_hops` | datagrams for this process to send; the next hop cache |
//! | `frames` | runs frames without an interface |
//! | `bench` | benchmarks per packet and per frame |
//! | `engine` | what a switch starts: all of it combined |

mod arena;
mod attach;
mod bench;
mod engine;
mod error;
mod frames;
mod handover;
mod interface;
mod kept;
mod layout;
mod link;
mod next_hops;
mod object;
mod pins;
mod program;

pub use bench::{BenchPacket, Benched, Work};
pub use engine::{Found, KernelEngine, Place, SERVED_MAX, detach};
pub use error::KernelError;
pub use frames::{Action, Arrival, Departure};
pub use handover::Handover;
pub use layout::SHELL_COUNTS;
pub use program::{Kernel, KernelTasks, NOW};

/// Parses the build script's hash, a hexadecimal number.
#[must_use]
pub const fn layout_of(hash: &str) -> u64 {
    match u64::from_str_radix(hash, 16) {
        Ok(hash) => hash,
        Err(_) => panic!("the build script writes a hexadecimal number"),
    }
}
