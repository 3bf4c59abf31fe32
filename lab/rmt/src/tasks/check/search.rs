//! The search: `stateright`, breadth first. It keeps 64 bits of each visited state; among ten million states a collision has a probability
//! of 3 in a million and would hide one state.

use super::pack::{pack, unpack};
use super::world::{Setting, Step, World, narrate};
use super::{Broken, Instance, Seen, Subject, Verdict, Violation};
use crate::Watch;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    bytes: Box<[u8]>,
    broken: Option<Arc<Broken>>,
}

#[derive(Debug, Default)]
struct Counts([AtomicU64; 4]);

impl Counts {
    fn add(&self, Seen { assigned, no_ops, refused, held }: Seen) {
        let counted = self.0.iter().zip([assigned, no_ops, refused, held]).filter(|(_, more)| *more > 0);
        counted.for_each(|(count, more)| _ = count.fetch_add(more, Ordering::Relaxed));
    }

    fn seen(&self) -> Seen {
        let [assigned, no_ops, refused, held] = self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        Seen { assigned, no_ops, refused, held }
    }
}

struct Search<S> {
    setting: Arc<Setting<S>>,
    counts: Arc<Counts>,
    watch: Watch,
}

impl<S: Subject> Search<S> {
    /// When the search must end, nothing breaks any more, and nothing follows.
    fn holds(&self, state: &State) -> bool {
        self.watch.stops() || state.broken.is_none() && unpack(&self.setting, &state.bytes).finish().is_ok()
    }
}

impl<S: Subject> Model for Search<S> {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State { bytes: pack(&mut World::new(&self.setting)), broken: None }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        if state.broken.is_none() && !self.watch.stops() {
            self.watch.count();
            actions.extend(unpack(&self.setting, &state.bytes).steps());
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut world = unpack(&self.setting, &state.bytes);
        let broken = world.step(step).err().map(Arc::new);
        // There was no answer to lose.
        if broken.is_none() && world.mute {
            return None;
        }
        self.counts.add(world.seen);
        Some(State { bytes: pack(&mut world), broken })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("rules", Self::holds)]
    }
}

/// Searches an instance, on this many threads. With one, the depth is exact.
pub fn run<S: Subject>(subject: S, instance: &Instance, threads: usize, watch: &Watch) -> Verdict {
    let setting = Arc::new(Setting::new(subject, instance.clone()));
    let (mut verdict, mut way) = search(&setting, threads, None, watch);
    let (mut last, mut shortest) = (None, false);
    // The searcher stops some states after its first find. So repeat the search until it finds no shorter sequence.
    while let Some(steps) = way {
        let shorter = steps.len();
        last = Some(steps);
        let (searched, next) = search(&setting, 1, Some(shorter), watch);
        (shortest, way) = (searched.exhaustive, next);
    }
    verdict.violations.extend(last.map(|steps| violation(&setting, &steps, shortest)));
    verdict
}

fn violation<S: Subject>(setting: &Setting<S>, steps: &[Step], shortest: bool) -> Violation {
    let (transcript, broken) = narrate(setting, steps);
    let broken = broken.unwrap_or(Broken { rule: "checker", what: "the way does not lead there again".into() });
    Violation { broken, steps: steps.len(), shortest, transcript }
}

/// The states within fewer than `shorter` steps, and the steps to one that breaks a rule.
fn search<S: Subject>(
    setting: &Arc<Setting<S>>,
    threads: usize,
    shorter: Option<usize>,
    watch: &Watch,
) -> (Verdict, Option<Vec<Step>>) {
    let counts = Arc::new(Counts::default());
    let model = Search { setting: Arc::clone(setting), counts: Arc::clone(&counts), watch: watch.clone() };
    let mut builder = model.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    if let Some(limit) = setting.instance.limit {
        builder = builder.target_state_count(limit);
    }
    if let Some(shorter) = shorter {
        // A state's depth counts the first state too; states of this depth are not visited.
        builder = builder.target_max_depth(shorter + 1);
    }
    let checker = builder.spawn_bfs().join();
    let exhaustive = !watch.stops() && setting.instance.limit.is_none_or(|limit| checker.state_count() < limit);
    let verdict = Verdict {
        states: checker.unique_state_count(),
        steps: checker.state_count() - 1,
        depth: checker.max_depth().saturating_sub(1),
        exhaustive: exhaustive && checker.discoveries().is_empty(),
        violations: Vec::new(),
        seen: counts.seen(),
    };
    let way = checker.discoveries().into_values().next().map(stateright::Path::into_actions);
    (verdict, way)
}
