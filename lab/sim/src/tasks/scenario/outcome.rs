//! The result of a run, in constant memory whatever the number of tasks.

use super::jobs::planned;
use crate::tasks::{TaskEnd, TaskEvent};
use crate::{Happening, NodeId, Sink};
use hdrhistogram::Histogram;
use midflight_endpoint::Nanos;
use std::collections::BTreeMap;
use std::ops::Range;

/// Longer delays count as an hour.
const LONGEST: Nanos = 3_600_000_000_000;

/// Delays from the call of submit to the start, in nanoseconds, exact to one in a thousand.
#[derive(Clone, Debug)]
pub struct Delays(Histogram<u64>);

impl Delays {
    fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds are in order"))
    }

    fn record(&mut self, delay: Nanos) {
        self.0.saturating_record(delay);
    }

    /// Number of tasks.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The delay that this share of the tasks (0 to 1) did not exceed; 0 without tasks.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Nanos {
        self.0.value_at_quantile(quantile)
    }

    /// The longest.
    #[must_use]
    pub fn max_ns(&self) -> Nanos {
        self.0.max()
    }

    /// The mean.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.0.mean()
    }
}

/// A fault, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// When.
    pub at: Nanos,
    /// A description for people.
    pub what: String,
    /// Time until the next task started; `None`: none did.
    pub next_start: Option<Nanos>,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Tasks that clients submitted.
    pub submitted: u64,
    /// Tasks whose result their client reported.
    pub completed: u64,
    /// Tasks that were given up.
    pub lost: u64,
    /// Tasks whose client died.
    pub abandoned: u64,
    /// Runs that began.
    pub starts: u64,
    /// Of those, repeated runs of a task.
    pub again: u64,
    /// Of all runs, those whose data was at another place.
    pub far: u64,
    /// Sum of the durations of all started runs, without the delays of remote data.
    pub work_ns: u128,
    /// When the last end was reported.
    pub last_end: Nanos,
    /// First starts.
    pub delays: Delays,
    /// First starts by level.
    pub levels: BTreeMap<u8, Delays>,
    /// By time.
    pub disturbances: Vec<Disturbance>,
    /// The first of them without a next start.
    undisturbed: usize,
    clients: Range<u32>,
    open: Vec<u64>,
}

impl Outcome {
    pub(super) fn new(clients: Range<u32>, disturbances: Vec<Disturbance>) -> Self {
        Self {
            submitted: 0,
            completed: 0,
            lost: 0,
            abandoned: 0,
            starts: 0,
            again: 0,
            far: 0,
            work_ns: 0,
            last_end: 0,
            delays: Delays::new(),
            levels: BTreeMap::new(),
            disturbances,
            undisturbed: 0,
            open: vec![0; clients.len()],
            clients,
        }
    }

    /// Open tasks.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.submitted - self.completed - self.lost - self.abandoned
    }

    fn open_of(&mut self, client: NodeId) -> Option<&mut u64> {
        let number = client.0.checked_sub(self.clients.start)?;
        self.open.get_mut(number as usize)
    }

    fn started(&mut self, at: Nanos, attempt: u8, priority: u8, argument: &[u8; 16]) {
        let (submitted, duration) = planned(argument);
        self.starts += 1;
        self.work_ns += u128::from(duration);
        while let Some(disturbance) = self.disturbances.get_mut(self.undisturbed).filter(|d| d.at <= at) {
            disturbance.next_start = Some(at - disturbance.at);
            self.undisturbed += 1;
        }
        if attempt > 1 {
            self.again += 1;
            return;
        }
        let delay = at.saturating_sub(submitted);
        self.delays.record(delay);
        self.levels.entry(priority).or_insert_with(Delays::new).record(delay);
    }
}

impl Sink for Outcome {
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        match happening {
            Happening::Crashed { node } | Happening::Restarted { node } => {
                if let Some(open) = self.open_of(*node) {
                    let open = std::mem::take(open);
                    self.abandoned += open;
                }
            }
            _ => happening.of().into_iter().for_each(|event| self.task_event(at, event)),
        }
    }
}

impl Outcome {
    fn task_event(&mut self, at: Nanos, event: &TaskEvent) {
        match event {
            TaskEvent::Submitted { client, keys, .. } => {
                let tasks = keys.end - keys.start;
                self.submitted += tasks;
                self.open_of(*client).into_iter().for_each(|open| *open += tasks);
            }
            TaskEvent::Started { attempt, priority, argument, far, .. } => {
                self.far += u64::from(*far);
                self.started(at, *attempt, *priority, argument);
            }
            TaskEvent::Reported { client, end, .. } => {
                self.last_end = at;
                self.open_of(*client).into_iter().for_each(|open| *open -= 1);
                match end {
                    TaskEnd::Completed { .. } => self.completed += 1,
                    TaskEnd::Lost | TaskEnd::Cancelled(_) => self.lost += 1,
                }
            }
            _ => {}
        }
    }
}
