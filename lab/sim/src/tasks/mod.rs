//! The tasks program in the simulated world.
//!
//! | where | what |
//! |---|---|
//! | [`switch`], [`executor`], [`client`] | the production code as actors: each does what `host` does with sockets and threads |
//! | [`asic`] | the asic engine as an actor |
//! | [`nodes`] | adds them to a world |
//! | `event` | the events that they record |
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
use midflight_wire::tasks::RESULT_MAX;

/// A user's request to an executor or a client, by [`crate::Action::command`].
#[derive(Clone, Debug)]
pub enum Command {
    /// An executor drains: it accepts no new tasks.
    Drain,
    /// A client submits the tasks of one job. Byte 0 of each argument says how many further times the result repeats
    /// the argument; bytes 1 to 7 are the run time in nanoseconds, in network order, whose first bit is [`DEAF`].
    Submit {
        /// The job's number.
        jid: u32,
        /// The tasks.
        tasks: Vec<Task>,
    },
    /// A client cancels tasks.
    Cancel {
        /// The tasks. Each life of a client numbers its tasks from 0.
        keys: Vec<TaskKey>,
        /// Running ones are to be stopped.
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

/// The bit of byte 1 of an argument for a function that ignores a stop.
pub const DEAF: u8 = 0x80;

/// A task's run time in nanoseconds: bytes 1 to 7 of its argument, in network order, without [`DEAF`].
#[must_use]
pub fn run_time(argument: &[u8; 16]) -> Nanos {
    let [_, b, c, d, e, f, g, h, ..] = *argument;
    u64::from_be_bytes([0, b & !DEAF, c, d, e, f, g, h])
}

/// Whether a task ignores a stop and runs to its end.
#[must_use]
pub fn is_deaf(argument: &[u8; 16]) -> bool {
    argument[1] & DEAF != 0
}

/// A task's result: its argument, repeated as its first byte says, up to the limit of a completion.
#[must_use]
pub fn result_of(argument: &[u8; 16]) -> Vec<u8> {
    argument.repeat((1 + usize::from(argument[0])).min(RESULT_MAX / argument.len()))
}
