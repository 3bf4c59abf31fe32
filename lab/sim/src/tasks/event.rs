//! Events of tasks, recorded by the nodes of the tasks program.

use crate::{Happening, NodeId, Sink};
use midflight_endpoint::Nanos;
use midflight_tasks::client::{CancelledHow, TaskKey};
use midflight_tasks::executor::{Bundles, RunKey};
use std::ops::Range;

/// An event of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// A client took tasks from its caller.
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
        /// The executor.
        executor: NodeId,
        /// The run's key on this executor.
        run: RunKey,
        /// The task's client, if it is in this world.
        client: Option<NodeId>,
        /// Its job.
        jid: u32,
        /// Its number in the job.
        tid: u32,
        /// From 1.
        attempt: u8,
        /// Its level.
        priority: u8,
        /// Its required resources.
        resources: u8,
        /// Its bundles of counted resources.
        bundles: Bundles,
        /// Its argument.
        argument: [u8; 16],
        /// Time from its slot's request to its arrival (the executor's clock).
        asked_for: Nanos,
        /// Time from the arrival of its ASSIGN to its start: a prefetched task waits for a worker.
        held_for: Nanos,
        /// Its data is at another place, so that it takes longer.
        far: bool,
        /// From its acceptance to its assignment (the switch's clock).
        waited_us: u32,
    },
    /// A run ended on a live executor.
    Ended {
        /// The executor.
        executor: NodeId,
        /// The run.
        run: RunKey,
        /// Its client had it stopped.
        stopped: bool,
    },
    /// A run begins to wait for other tasks, and lends its slot, or continues.
    Waits {
        /// The executor.
        executor: NodeId,
        /// The run.
        run: RunKey,
        /// Whether it waits.
        waits: bool,
    },
    /// A client reported the end of a task to its caller.
    Reported {
        /// The client.
        client: NodeId,
        /// The task.
        key: TaskKey,
        /// How it ended.
        end: TaskEnd,
    },
    /// An executor has drained.
    Drained {
        /// The executor.
        executor: NodeId,
    },
    /// A caller cancels tasks.
    CancelAsked {
        /// The client.
        client: NodeId,
        /// The tasks.
        keys: Vec<TaskKey>,
        /// Running ones are to be stopped.
        stop: bool,
    },
}

/// The end of a task, as its caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// It has run.
    Completed {
        /// Its status was Ok.
        ok: bool,
        /// The attempt.
        attempt: u8,
        /// Its result.
        result: Vec<u8>,
    },
    /// No attempt was left.
    Lost,
    /// It was cancelled.
    Cancelled(CancelledHow),
}

/// All events of tasks, in order: for tests.
#[derive(Debug, Default)]
pub struct History {
    events: Vec<(Nanos, TaskEvent)>,
    reported: usize,
}

impl Sink for History {
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        if let Some(event) = happening.of::<TaskEvent>() {
            self.reported += usize::from(matches!(event, TaskEvent::Reported { .. }));
            self.events.push((at, event.clone()));
        }
    }
}

impl History {
    /// Number of task ends that clients reported.
    #[must_use]
    pub fn reported(&self) -> usize {
        self.reported
    }

    /// In order, with their times.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Nanos, &TaskEvent)> {
        self.events.iter().map(|(at, event)| (*at, event))
    }
}
