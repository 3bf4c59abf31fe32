//! The soft engine in the kernel: the same C core as BPF, in a BPF arena that this process maps (feature `kernel`).
//!
//! [`KernelEngine`] is what a switch runs: a program whose shells are attached to interfaces. [`Kernel`] is the program
//! alone, to which datagrams are brought by `BPF_PROG_RUN`. `docs/internals/kernel.md` explains the arena, the lock and the
//! two shells.
//!
//! | file | subject |
//! |---|---|
//! | `object`, `program` | loading the BPF programs, calling them |
//! | `arena`, `layout`, `kept` | the memory that they share with this process, and its layout |
//! | `interface`, `link`, `attach` | interfaces, and programs on them |
//! | `pins` | programs and memory that outlive the process |
//! | `handover`, `next_hops` | datagrams that the shells leave to this process; the next hop cache |
//! | `frames` | frames through the shells without an interface |
//! | `bench` | what a packet costs, and a frame |
//! | `engine` | all of it combined: what a switch starts |

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

/// What the build script wrote: a hexadecimal number.
#[must_use]
pub const fn layout_of(hash: &str) -> u64 {
    match u64::from_str_radix(hash, 16) {
        Ok(hash) => hash,
        Err(_) => panic!("the build script writes a hexadecimal number"),
    }
}
