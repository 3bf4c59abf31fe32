//! Breadth-first search, so that it finds the shortest refutation.

use super::founding;
use super::history::Operation;
use super::planted::Planted;
use super::scope::{Members, Scope};
use super::state::{Entry, Leader, REPLICAS, Replica, Session, Sid, State, Switch, What};
use super::world::{Step, World};
use midflight_rmt::Watch;
use stateright::{Checker, HasDiscoveries, Model, Property};

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Distinct states.
    pub states: usize,
    /// Steps on the longest way to a new state.
    pub depth: usize,
    /// Nothing was left out.
    pub exhaustive: bool,
    /// The broken rule, and how.
    pub refutation: Option<Refutation>,
}

/// Steps to a state that breaks a rule.
#[derive(Clone, Debug)]
pub struct Refutation {
    /// The rule.
    pub rule: &'static str,
    /// Steps in words; the fewest if one thread searched. The numbers of replicas 1 and 2 may change between steps, see
    /// `reduce.rs`.
    pub steps: Vec<String>,
}

struct Search {
    scope: Scope,
    watch: Watch,
}

const R1: &str = "R1";
const R4: &str = "R4";
/// Name of the property that the strict check protects.
const STRICT: &str = "check";

impl Model for Search {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![first(&self.scope)]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let world = World { scope: &self.scope, state: state.clone() };
        self.watch.count();
        if world.is_open() && !self.watch.stops() {
            world.steps(steps);
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut world = World { scope: &self.scope, state: state.clone() };
        world.step(step);
        Some(world.reduced()).filter(|after| after != state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let linearizable = Property::<Self>::always(R1, |_, state| !state.broken);
        let one_active = Property::<Self>::always(R4, |_, state| {
            let leases = state.switches.iter().filter_map(|switch| switch.session.as_ref());
            leases.filter(|session| session.lease > 0).count() <= 1
        });
        let strict = Property::<Self>::always(STRICT, |_, state| !state.let_through);
        // A planted error must do harm, not only break a rule that prevents harm. What the strict check lets pass does
        // none: R1 does not need that check.
        match self.scope.planted {
            None => vec![linearizable, one_active, strict],
            Some(Planted::ReplySeqOfFormerSession) => vec![strict],
            Some(_) => vec![linearizable],
        }
    }
}

/// The initial state with three members: replica 0 leads, by replica 1's promise, and its first session is active at
/// switch 0.
fn first(scope: &Scope) -> State {
    let sid = Sid { term: 1, number: 1 };
    let entry = Entry { term: 1, what: What::Session { sid, switch: 0, incarnation: 0 } };
    let timing = scope.timing;
    let matched = std::array::from_fn(|place| u8::from(place < usize::from(scope.members.places())));
    let follower = Replica { term: 1, log: vec![entry], commit: 1, promise: timing.promise, voter: true, leader: None };
    let leader = Leader {
        sid: Some(sid),
        sessions: 1,
        start: 1,
        switch: 0,
        incarnation: 0,
        lease: timing.leader_lease,
        heard: [0; REPLICAS],
        barred: false,
        matched,
        processed: Default::default(),
        waiting: Vec::new(),
        doubtful: Vec::new(),
        since_answer: timing.fence,
        flush: None,
        outside: Vec::new(),
    };
    let session =
        Session { sid, start: 1, leader: 0, lease: timing.switch_lease, seq: 0, matched, kgroups: Default::default() };
    let fourth = match scope.members {
        Members::WithLearner | Members::Grown => Replica { promise: 0, ..follower.clone() },
        Members::Three => Replica { term: 0, log: Vec::new(), commit: 0, promise: 0, voter: false, leader: None },
    };
    let mut switches = vec![Switch::default(); scope.switches];
    switches[0].session = Some(session);
    let state = State {
        switches,
        replicas: [
            Replica { promise: 0, leader: Some(leader), ..follower.clone() },
            follower.clone(),
            Replica { promise: 0, ..follower.clone() },
            fourth,
        ],
        messages: Default::default(),
        operations: scope.operations.iter().map(|&kind| Operation::new(kind)).collect(),
        budget: scope.budget,
        ahead: 0,
        broken: false,
        let_through: false,
    };
    match scope.members {
        Members::Three => state,
        Members::WithLearner => later(state),
        Members::Grown => grown(later(state)),
    }
}

fn later(mut state: State) -> State {
    for replica in &mut state.replicas {
        replica.promise = 0;
        replica.leader.iter_mut().for_each(|leader| (leader.lease, leader.since_answer) = (0, 0));
    }
    state.switches.iter_mut().filter_map(|switch| switch.session.as_mut()).for_each(|session| session.lease = 0);
    state
}

/// The expired state with four voters, by an entry that replicas 0 and 1 have, and only 0 knows to be committed.
fn grown(mut state: State) -> State {
    for replica in &mut state.replicas[..2] {
        replica.log.push(Entry { term: 1, what: What::Members { voters: 0b1111 } });
    }
    let leader = &mut state.replicas[0];
    leader.commit = 2;
    leader.leader.iter_mut().for_each(|memory| memory.matched[..2].fill(2));
    state
}

/// Searches a scope on `threads` threads.
#[must_use]
pub fn search(scope: &Scope, threads: usize, watch: &Watch) -> Verdict {
    if scope.is_founding {
        return founding::search(scope, threads, watch);
    }
    let search = Search { scope: scope.clone(), watch: watch.clone() };
    let checker = search.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let refutation = checker.discoveries().into_iter().next().map(|(rule, path)| {
        let steps = path.into_actions().iter().map(ToString::to_string).collect();
        Refutation { rule, steps }
    });
    Verdict {
        states: checker.unique_state_count(),
        depth: checker.max_depth().saturating_sub(1),
        exhaustive: refutation.is_none() && !watch.stops(),
        refutation,
    }
}
