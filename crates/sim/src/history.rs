//! What happened in a world, in order: what tests and reports look at.

use crate::{NodeId, Sink};
use midflight_endpoint::Nanos;
use midflight_tasks::client::TaskKey;
use midflight_tasks::executor::RunKey;
use std::net::SocketAddr;
use std::ops::Range;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A client took tasks.
    Submitted {
        /// The client.
        client: NodeId,
        /// The job.
        jid: u32,
        /// The keys of its tasks.
        keys: Range<u64>,
    },
    /// An executor began to run a task.
    Started {
        /// Where.
        executor: NodeId,
        /// Names the run on this executor.
        run: RunKey,
        /// Whose task, if that client is of this world.
        client: Option<NodeId>,
        /// Its job.
        jid: u32,
        /// Its number in the job.
        tid: u32,
        /// From 1.
        attempt: u8,
        /// Its level.
        priority: u8,
        /// Its argument.
        argument: [u8; 16],
        /// How long its slot had asked for it when it came (the executor's clock).
        asked_for: Nanos,
        /// From its acceptance to its assignment (the switch's clock).
        waited_us: u32,
    },
    /// A run ended, and its executor was still there.
    Ended {
        /// Where.
        executor: NodeId,
        /// Which.
        run: RunKey,
    },
    /// A client told its caller the end of a task.
    Told {
        /// The client.
        client: NodeId,
        /// The task.
        key: TaskKey,
        /// Which end.
        how: Told,
    },
    /// An executor has drained.
    Drained {
        /// Which one.
        executor: NodeId,
    },
    /// A client wants tasks not to be run.
    CancelAsked {
        /// The client.
        client: NodeId,
        /// The tasks.
        keys: Vec<TaskKey>,
    },
    /// A measurement of a scheme's own.
    Measured {
        /// Where.
        node: NodeId,
        /// Of what.
        what: &'static str,
        /// In the unit that `what` says.
        value: u64,
    },
    /// A node died.
    Crashed {
        /// Which one.
        node: NodeId,
    },
    /// A node came back.
    Restarted {
        /// Which one.
        node: NodeId,
    },
    /// A node stands still.
    Paused {
        /// Which one.
        node: NodeId,
    },
    /// A node goes on.
    Resumed {
        /// Which one.
        node: NodeId,
    },
    /// A node is elsewhere.
    Moved {
        /// Which one.
        node: NodeId,
        /// Where.
        to: SocketAddr,
    },
    /// A partition began.
    Partitioned,
    /// All partitions ended.
    Healed,
}

/// The end of a task, as its caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It ran.
    Completed {
        /// Whether its status was Ok.
        ok: bool,
        /// Which attempt.
        attempt: u8,
        /// Its result.
        result: Vec<u8>,
    },
    /// No attempt was left.
    Lost,
    /// It was taken out.
    Cancelled,
}

/// All that happened, in order.
#[derive(Debug, Default)]
pub struct History {
    happenings: Vec<(Nanos, Happening)>,
    told: usize,
}

impl Sink for History {
    fn happened(&mut self, at: Nanos, happening: Happening) {
        self.told += usize::from(matches!(happening, Happening::Told { .. }));
        self.happenings.push((at, happening));
    }
}

impl History {
    /// Ends of tasks that were told.
    #[must_use]
    pub fn told(&self) -> usize {
        self.told
    }

    /// In order, with their times.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Nanos, &Happening)> {
        self.happenings.iter().map(|(at, happening)| (*at, happening))
    }
}
