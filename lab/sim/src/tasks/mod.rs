//! The tasks program in the simulated world.
//!
//! | where | what |
//! |---|---|
//! | [`switch`], [`executor`], [`client`] | the production code as actors: each does what `host` does with sockets and threads |
//! | [`asic`] | the asic engine as an actor |
//! | [`nodes`] | adds them to a world |
//! | `event` | the events that they record: tasks submitted, started, ended |
//! | [`scenario`] | builds a world from a file |
//! | [`check`] | the fault campaign's subject |

pub mod asic;
pub mod check;
pub mod client;
pub mod executor;
pub mod nodes;
pub mod scenario;
pub mod switch;

mod event;

pub use event::{History, TaskEnd, TaskEvent};

use midflight_endpoint::Nanos;
use midflight_tasks::client::{Task, TaskKey};
use midflight_wire::{RESULT_MAX, TaskInfo};

/// A request of the user of an executor or a client, by [`crate::Action::command`].
#[derive(Clone, Debug)]
pub enum Command {
    /// An executor drains: it accepts no new tasks.
    Drain,
    /// A client submits the tasks of one job. Each argument begins with a zero byte, or how often more than once the result repeats
    /// the argument; then the run time: 7 bytes, nanoseconds, network order, of which the first bit is [`DEAF`].
    Submit {
        /// The job's number.
        jid: u32,
        /// The tasks.
        tasks: Vec<Task>,
    },
    /// A client cancels tasks.
    Cancel {
        /// Which. Each life of a client numbers its tasks from 0.
        keys: Vec<TaskKey>,
        /// Whether those that run are to be stopped.
        stop: bool,
    },
}

/// A job, and when it is submitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// By the client's clock.
    pub at: Nanos,
    /// The job's number.
    pub jid: u32,
    /// At least one.
    pub tasks: Vec<Task>,
}

/// Jobs in the order of their times.
pub type Submissions = Box<dyn Iterator<Item = Submission>>;

/// The bit of byte 1 of an argument that says that the function does not listen when it is to be stopped.
pub const DEAF: u8 = 0x80;

/// Nanoseconds that a task runs: the bytes 1 to 7 of its argument, in network order, without [`DEAF`].
#[must_use]
pub fn run_time(task: &TaskInfo) -> Nanos {
    let [_, b, c, d, e, f, g, h, ..] = task.argument;
    u64::from_be_bytes([0, b & !DEAF, c, d, e, f, g, h])
}

/// Whether a task runs to its end though it is to be stopped.
#[must_use]
pub fn is_deaf(argument: &[u8; 16]) -> bool {
    argument[1] & DEAF != 0
}

/// A task's result: its argument, repeated as often as its first byte says, up to the most that a completion carries.
#[must_use]
pub fn result_of(argument: &[u8; 16]) -> Vec<u8> {
    argument.repeat((1 + usize::from(argument[0])).min(RESULT_MAX / argument.len()))
}
