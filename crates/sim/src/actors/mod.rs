//! What runs on a node of the world. Production endpoints are actors by one adapter each, which does what `host` does
//! with sockets and threads; the schemes that they are compared with are actors too.

pub mod asic;
pub mod client;
pub mod executor;
pub mod switch;

use crate::{Context, NodeId};
use midflight_endpoint::Nanos;
use midflight_tasks::client::{Task, TaskKey};
use midflight_wire::TaskInfo;
use rand_pcg::Pcg64;
use std::any::Any;
use std::net::SocketAddr;

/// What runs on a node.
pub trait Actor: Any {
    /// It begins to run.
    fn start(&mut self, context: &mut Context<'_>);

    /// A datagram has arrived.
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]);

    /// A time that it asked for has come.
    fn wake(&mut self, context: &mut Context<'_>, wake: Wake);

    /// Its user wants something of it. What means nothing to it, it ignores.
    fn command(&mut self, context: &mut Context<'_>, command: Command) {
        let (_, _) = (context, command);
    }

    /// How long it takes to decide about this datagram, one after the other, before [`Actor::datagram`] is called:
    /// what a scheduler of one thread costs.
    fn cost(&self, from: SocketAddr, datagram: &[u8]) -> Nanos {
        let (_, _) = (from, datagram);
        0
    }
}

/// Why an actor is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time asked for by [`Context::wake_at`].
    Time,
    /// What was given to [`Context::after`].
    Token(u64),
}

/// What a node's user asks for.
#[derive(Clone, Debug)]
pub enum Command {
    /// An executor takes nothing new.
    Drain,
    /// A client has tasks of one job.
    Submit {
        /// The job's number.
        jid: u32,
        /// What.
        tasks: Vec<Task>,
    },
    /// A client wants these tasks not to be run.
    Cancel(Vec<TaskKey>),
}

/// What a process finds when it begins.
#[derive(Debug)]
pub struct Birth {
    /// Its node.
    pub node: NodeId,
    /// Where it is reached.
    pub address: SocketAddr,
    /// By its node's clock.
    pub now: Nanos,
    /// Of this life only.
    pub random: Pcg64,
}

/// Makes a new process, at first and after each crash.
pub type Factory = Box<dyn Fn(&mut Birth) -> Box<dyn Actor>>;

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

/// Nanoseconds that a task runs: the first 8 bytes of its argument, in network order.
#[must_use]
pub fn run_time(task: &TaskInfo) -> Nanos {
    let [a, b, c, d, e, f, g, h, ..] = task.argument;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
