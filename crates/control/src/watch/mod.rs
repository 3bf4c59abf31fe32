//! Live views of a process: a [`View`], which the page and `midflight top` show. `docs/internals/watching.md` says how they are made,
//! `docs/watching.md` describes their fields.
//!
//! | where | what a view adds to the status |
//! |---|---|
//! | `tasks`, with `executors`, `jobs` and `label` | of a task queue |
//! | `store` | of the switch of a store: its replicas |
//! | `cache` | of an operator: traffic groups, RSNodes, servers |
//! | `controller` | of a controller: its lists, bounded |

mod cache;
mod controller;
mod executors;
mod jobs;
mod label;
mod store;
mod tasks;

pub use cache::{
    CacheDetail, CacheWatch, GroupState, GroupView, OperatorParts, RsNodeView, SelectorView, ServerState, ServerView,
};
pub use controller::ControllerDetail;
pub use executors::{ExecutorState, ExecutorView};
pub use jobs::{ClientView, JobView};
pub use label::label;
pub use store::{ReplicaState, ReplicaView, SessionView, SetView, StoreDetail, StoreWatch};
pub use tasks::{TasksDetail, TasksWatch};

use crate::metrics::{ProgramStatus, ShellCounters, Snapshot};
use midflight_dataplane::program::Program;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Entries of a list in a view.
pub const LISTED_MAX: usize = 256;

/// A process at one moment, and the changes since the previous view.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct View<S, D = TasksDetail> {
    /// The kind of process: a switch of `tasks`, `store` or `cache`, a `replica` or a `controller`.
    pub program: String,
    /// Number of this view since the first viewer came: a gap means missed views.
    pub number: u64,
    /// Milliseconds since the previous view; `None`: there was none.
    pub period_ms: Option<u64>,
    /// Number of viewers: pages and `midflight top`.
    pub viewers: u32,
    /// As `/status`.
    pub status: S,
    /// Counters that have changed since the previous view, by name: the change per second.
    pub rates: BTreeMap<String, f64>,
    /// What the program adds; `None`: nothing, or the switch had no time for it.
    pub detail: Option<D>,
}

/// A bounded list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The first entries.
    pub shown: Vec<T>,
    /// Number of further entries.
    pub more: u64,
}

impl<T> Listed<T> {
    /// Keeps the first [`LISTED_MAX`] entries.
    pub fn of(mut all: Vec<T>) -> Self {
        let more = all.len().saturating_sub(LISTED_MAX) as u64;
        all.truncate(LISTED_MAX);
        Self { shown: all, more }
    }
}

/// The status of a process that can be watched.
pub trait Watched: Serialize {
    /// The kind of process, in one word: see [`View::program`].
    fn program(&self) -> &'static str;

    /// All counters; a name includes the path in the status.
    fn counts(&self) -> BTreeMap<String, u64>;
}

impl<S: ProgramStatus> Watched for Snapshot<S> {
    fn program(&self) -> &'static str {
        S::Program::NAME
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        let groups = [("packets", &self.packets), ("drops", &self.drops), ("shell", &self.shell)];
        grouped(groups).chain([("taken".to_owned(), self.taken)]).chain(self.program.counts()).collect()
    }
}

/// Counters by name, prefixed by their group.
pub(crate) fn grouped<'a, const N: usize>(
    groups: [(&'a str, &'a ShellCounters); N],
) -> impl Iterator<Item = (String, u64)> + 'a {
    groups
        .into_iter()
        .flat_map(|(group, counts)| counts.iter().map(move |(name, &count)| (format!("{group}.{name}"), count)))
}

/// Makes the views of a process, one after the other.
pub trait Observer: Send {
    /// The next view as JSON, for this number of viewers.
    ///
    /// # Errors
    /// If it cannot be written.
    fn view(&mut self, viewers: u32) -> serde_json::Result<String>;
}

/// An observer that gets status and detail from a function.
#[derive(Debug)]
pub struct Looking<F> {
    look: F,
    sequence: ViewSequence,
}

impl<F> Looking<F> {
    /// With this function.
    pub fn new<S, D>(look: F) -> Self
    where
        F: FnMut() -> serde_json::Result<(S, Option<D>)>,
    {
        Self { look, sequence: ViewSequence::default() }
    }
}

impl<S: Watched, D: Serialize, F: FnMut() -> serde_json::Result<(S, Option<D>)> + Send> Observer for Looking<F> {
    fn view(&mut self, viewers: u32) -> serde_json::Result<String> {
        let (status, detail) = (self.look)()?;
        serde_json::to_string(&self.sequence.view(Instant::now(), viewers, status, detail))
    }
}

/// The common part of all observers: the counters of the last view, for the rates.
#[derive(Debug, Default)]
pub struct ViewSequence {
    number: u64,
    last: Option<(Instant, BTreeMap<String, u64>)>,
}

impl ViewSequence {
    /// The next view, of this snapshot.
    pub fn view<S: Watched, D>(&mut self, now: Instant, viewers: u32, status: S, detail: Option<D>) -> View<S, D> {
        let counts = status.counts();
        let period = self.last.as_ref().map(|(then, _)| now.saturating_duration_since(*then));
        let rates = match (&self.last, period) {
            (Some((_, before)), Some(period)) => rates(before, &counts, period),
            _ => BTreeMap::new(),
        };
        self.number += 1;
        self.last = Some((now, counts));
        View {
            program: status.program().into(),
            number: self.number,
            period_ms: period.map(|period| u64::try_from(period.as_millis()).unwrap_or(u64::MAX)),
            viewers,
            status,
            rates,
            detail,
        }
    }
}

/// A counter that has decreased restarted from 0.
fn rates(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>, period: Duration) -> BTreeMap<String, f64> {
    let seconds = period.as_secs_f64().max(1e-3);
    let changed = now.iter().filter_map(|(name, &count)| {
        let more = count.saturating_sub(before.get(name).copied().unwrap_or(0));
        (more > 0).then(|| (name.clone(), rate(more, seconds)))
    });
    changed.collect()
}

/// Rounded to three digits: more are unreadable.
fn rate(more: u64, seconds: f64) -> f64 {
    (more as f64 / seconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::status::tests::snapshot;

    #[test]
    fn rates_are_of_a_second_and_only_of_what_has_changed() {
        let (mut sequence, start) = (ViewSequence::default(), Instant::now());
        let first = sequence.view::<_, ()>(start, 1, snapshot(), None);
        assert_eq!((first.number, first.period_ms, first.rates.len()), (1, None, 0));
        let mut later = snapshot();
        later.program.tasks.completed += 500;
        *later.drops.get_mut("full").unwrap() += 1;
        let second = sequence.view::<_, ()>(start + Duration::from_millis(250), 1, later, None);
        assert_eq!((second.number, second.period_ms), (2, Some(250)));
        let rates: Vec<_> = second.rates.iter().map(|(name, rate)| (name.as_str(), *rate)).collect();
        assert_eq!(rates, [("drops.full", 4.0), ("tasks.completed", 2000.0)]);
    }

    #[test]
    fn a_list_says_how_many_it_leaves_out() {
        let listed = Listed::of((0..LISTED_MAX + 3).collect());
        assert_eq!((listed.shown.len(), listed.more), (LISTED_MAX, 3));
    }
}
