//! The soft engine in the kernel: the same C core as BPF, in a BPF arena that this process maps (feature `kernel`).
//!
//! [`KernelEngine`] is what a switch runs: a queue whose shells are attached to interfaces. [`KernelTasks`] is the queue
//! alone, to which datagrams are brought by `BPF_PROG_RUN`. `docs/internals/kernel.md` explains the arena, the lock and the
//! two shells.
//!
//! | file | subject |
//! |---|---|
//! | `object`, `tasks` | loading the programs, calling them |
//! | `arena`, `layout`, `kept` | the memory that they share with this process, and what is where in it |
//! | `interface`, `link`, `attach` | interfaces, and programs on them |
//! | `pins` | what outlives the process |
//! | `handover`, `ways` | answers that the shells leave to this process, and how executors know it |
//! | `frames` | frames through the shells without an interface |
//! | `engine` | all of it together |

mod arena;
mod attach;
mod engine;
mod error;
mod frames;
mod handover;
mod interface;
mod kept;
mod layout;
mod link;
mod object;
mod pins;
mod tasks;
mod ways;

pub use engine::{Found, KernelEngine, Place, SERVED_MAX};
pub use error::KernelError;
pub use frames::{Action, Arrival, Departure};
pub use handover::Handover;
pub use layout::SHELL_COUNTS;
pub use tasks::{BenchPacket, KernelTasks, NOW};
