//! Executors, derived from the slots of a survey, and those that have gone.

use super::Listed;
use super::label::label;
use midflight_dataplane::{SurveyedSlot, SurveyedState};
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_tasks::resources::ResourceNames;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};

const GONE_FOR: Nanos = 600 * SECOND;
const GONE_MAX: usize = 64;

/// The state of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutorState {
    /// Silent for a lease: its tasks are queued again (T10).
    Lost,
    /// Silent for more than half a lease.
    Silent,
    /// Heard recently.
    Alive,
    /// It has said good-bye.
    Left,
}

/// An executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorView {
    /// Its [`label`].
    pub id: String,
    /// Its address.
    pub address: String,
    /// Its state.
    pub state: ExecutorState,
    /// Milliseconds since its last message.
    pub heard_ms: u64,
    /// Its slots.
    pub slots: u32,
    /// Its slots with a task.
    pub busy: u32,
    /// Its slots that wait for one.
    pub parked: u32,
    /// Milliseconds since the assignment of its oldest task; `None`: it has none.
    pub longest_ms: Option<u64>,
    /// Names of its resources.
    pub resources: Vec<String>,
    /// Tasks that it had when it was lost, which the switch has queued again.
    pub had: u32,
}

#[derive(Clone, Debug)]
struct Seen {
    address: std::net::SocketAddr,
    heard_ns: Nanos,
    slots: u32,
    busy: u32,
    parked: u32,
    /// The earliest assignment.
    since_ns: Option<Nanos>,
    resources: u8,
    /// Tasks that it had at its last message.
    had: u32,
}

#[derive(Debug)]
pub(super) struct Executors {
    lease: Nanos,
    names: ResourceNames,
    before: HashMap<u64, Seen>,
    /// Executors that left, with the time at which their absence was noticed; oldest first.
    gone: VecDeque<(Nanos, ExecutorView)>,
}

impl Executors {
    pub(super) fn new(lease: Nanos, names: ResourceNames) -> Self {
        Self { lease, names, before: HashMap::new(), gone: VecDeque::new() }
    }

    /// Present and gone executors: first those that need attention, each kind by address. Also the number in each state.
    pub(super) fn see(
        &mut self,
        now: Nanos,
        slots: &[SurveyedSlot],
    ) -> (Listed<ExecutorView>, BTreeMap<ExecutorState, u64>) {
        let mut seen = added_up(slots);
        for (id, executor) in &mut seen {
            let had = self.before.get(id).map_or(0, |before| before.had);
            let is_heard = now.saturating_sub(executor.heard_ns) < self.lease;
            // A silent executor still has its tasks, even if the switch has queued them again.
            executor.had = if is_heard { executor.busy } else { had.max(executor.busy) };
        }
        let missed: Vec<_> = self.before.iter().filter(|(id, _)| !seen.contains_key(id)).collect();
        let missed: Vec<_> = missed.into_iter().map(|(&id, executor)| self.gone_one(now, id, executor)).collect();
        self.gone.retain(|(since, view)| {
            now.saturating_sub(*since) < GONE_FOR && !seen.keys().any(|id| label(*id) == view.id)
        });
        self.gone.extend(missed.into_iter().map(|view| (now, view)));
        while self.gone.len() > GONE_MAX {
            self.gone.pop_front();
        }
        let mut all: Vec<_> = seen.iter().map(|(&id, executor)| self.view(now, id, executor)).collect();
        all.extend(self.gone.iter().map(|(since, view)| {
            let heard_ms = view.heard_ms + now.saturating_sub(*since) / MS;
            ExecutorView { heard_ms, ..view.clone() }
        }));
        self.before = seen;
        let mut states = BTreeMap::new();
        all.iter().for_each(|view| *states.entry(view.state).or_insert(0) += 1);
        all.sort_by(|a, b| {
            (a.state, Reverse(a.busy), &a.address, &a.id).cmp(&(b.state, Reverse(b.busy), &b.address, &b.id))
        });
        (Listed::of(all), states)
    }

    /// A forgotten executor was lost if it was already silent in the last survey.
    fn gone_one(&self, now: Nanos, id: u64, executor: &Seen) -> ExecutorView {
        let view = self.view(now, id, executor);
        let state = if view.state == ExecutorState::Lost { ExecutorState::Lost } else { ExecutorState::Left };
        let had = if state == ExecutorState::Lost { executor.had } else { 0 };
        ExecutorView { state, had, slots: 0, busy: 0, parked: 0, longest_ms: None, ..view }
    }

    fn view(&self, now: Nanos, id: u64, executor: &Seen) -> ExecutorView {
        let silent = now.saturating_sub(executor.heard_ns);
        let state = match silent {
            silent if silent >= self.lease => ExecutorState::Lost,
            silent if silent > self.lease / 2 => ExecutorState::Silent,
            _ => ExecutorState::Alive,
        };
        ExecutorView {
            id: label(id),
            address: executor.address.to_string(),
            state,
            heard_ms: silent / MS,
            slots: executor.slots,
            busy: executor.busy,
            parked: executor.parked,
            longest_ms: executor.since_ns.map(|since| now.saturating_sub(since) / MS),
            resources: self.names.names(executor.resources),
            had: if state == ExecutorState::Lost { executor.had } else { 0 },
        }
    }
}

fn added_up(slots: &[SurveyedSlot]) -> HashMap<u64, Seen> {
    let mut all: HashMap<u64, Seen> = HashMap::new();
    for slot in slots {
        let one = all.entry(slot.executor()).or_insert_with(|| Seen {
            address: slot.address(),
            heard_ns: slot.heard_ns,
            slots: 0,
            busy: 0,
            parked: 0,
            since_ns: None,
            resources: 0,
            had: 0,
        });
        one.slots += 1;
        one.resources |= slot.resources;
        if slot.heard_ns > one.heard_ns {
            (one.heard_ns, one.address) = (slot.heard_ns, slot.address());
        }
        match slot.state() {
            SurveyedState::Busy(since) => {
                one.busy += 1;
                one.since_ns = Some(one.since_ns.map_or(since, |earliest| earliest.min(since)));
            }
            SurveyedState::Parked => one.parked += 1,
            SurveyedState::Free => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_dataplane::SurveyedSlot;

    const LEASE: Nanos = SECOND;

    fn executors() -> Executors {
        Executors::new(LEASE, ResourceNames::default())
    }

    fn slot(executor: u64, heard_ns: Nanos, state: SurveyedState) -> SurveyedSlot {
        SurveyedSlot::new(executor, "10.0.0.1:9".parse().unwrap(), heard_ns, state)
    }

    fn of(state: ExecutorState, listed: &Listed<ExecutorView>) -> Vec<&ExecutorView> {
        listed.shown.iter().filter(|view| view.state == state).collect()
    }

    #[test]
    fn t10_one_that_is_silent_for_a_lease_is_lost_and_says_what_it_had() {
        let mut executors = executors();
        let now = 10 * SECOND;
        let busy = slot(7, now, SurveyedState::Busy(now - SECOND));
        let (listed, _) = executors.see(now, &[busy, slot(7, now - MS, SurveyedState::Parked)]);
        let alive = of(ExecutorState::Alive, &listed);
        assert_eq!((alive[0].slots, alive[0].busy, alive[0].parked, alive[0].heard_ms), (2, 1, 1, 0));
        assert_eq!(alive[0].longest_ms, Some(1000));
        let (listed, _) = executors.see(now + LEASE * 3 / 4, &[busy]);
        assert_eq!(of(ExecutorState::Silent, &listed).len(), 1);
        let (listed, states) = executors.see(now + 2 * LEASE, &[slot(7, now, SurveyedState::Free)]);
        let lost = of(ExecutorState::Lost, &listed);
        assert_eq!((lost[0].had, lost[0].busy, lost[0].heard_ms), (1, 0, 2000));
        assert_eq!(states[&ExecutorState::Lost], 1);
        let (listed, _) = executors.see(now + 20 * LEASE, &[]);
        let gone = of(ExecutorState::Lost, &listed);
        assert_eq!((gone[0].had, gone[0].slots, gone[0].heard_ms), (1, 0, 20_000));
        let (listed, _) = executors.see(now + GONE_FOR + 21 * LEASE, &[]);
        assert!(listed.shown.is_empty());
    }

    #[test]
    fn one_that_is_forgotten_while_it_was_heard_has_left() {
        let mut executors = executors();
        executors.see(SECOND, &[slot(7, SECOND, SurveyedState::Parked)]);
        let (listed, _) = executors.see(SECOND + LEASE / 4, &[]);
        assert_eq!(of(ExecutorState::Left, &listed).len(), 1);
        let (listed, _) = executors.see(2 * SECOND, &[slot(7, 2 * SECOND, SurveyedState::Parked)]);
        assert_eq!(listed.shown.len(), 1, "it came back");
    }

    #[test]
    fn what_is_remembered_of_those_that_have_gone_is_bounded() {
        let mut executors = executors();
        let slots: Vec<_> = (0..200).map(|id| slot(id, SECOND, SurveyedState::Parked)).collect();
        executors.see(SECOND, &slots);
        let (listed, _) = executors.see(SECOND, &[]);
        assert_eq!(listed.shown.len(), GONE_MAX);
    }
}
