//! Breadth-first search, so that it finds the shortest refutation.

use super::scope::{Scope, seen};
use super::state::{
    Broken, Channel, Controller, IDS, LABEL, LABELLER, Number, OPERATORS, Operator, Role, RsNode, Rule, State, Term,
    Use, key,
};
use super::world::{Step, World};
use midflight_rmt::Watch;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Distinct states.
    pub states: usize,
    /// Steps on the longest way to a new state.
    pub depth: usize,
    /// Nothing was left out.
    pub exhaustive: bool,
    /// Required events that did not occur.
    pub unseen: Vec<&'static str>,
    /// The broken property, and how.
    pub refutation: Option<Refutation>,
}

/// Steps to a state that breaks a property.
#[derive(Clone, Debug)]
pub struct Refutation {
    /// The property.
    pub rule: &'static str,
    /// Steps in words; the fewest if one thread searched.
    pub steps: Vec<String>,
}

struct Search {
    scope: Scope,
    watch: Watch,
    seen: Arc<AtomicU8>,
}

impl Search {
    fn world(&self, state: &State) -> World<'_> {
        World { scope: &self.scope, state: state.clone(), seen: &self.seen }
    }
}

impl Model for Search {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![first(&self.scope)]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        self.watch.count();
        if state.broken.is_none() && !self.watch.stops() {
            self.world(state).steps(steps);
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut world = self.world(state);
        world.step(step);
        Some(world.reduced()).filter(|after| after != state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        // A condition is a plain function, so each is written out.
        vec![
            Property::<Self>::always(Broken::Order.name(), |_, state| state.broken != Some(Broken::Order)),
            Property::<Self>::always(Broken::Label.name(), |_, state| state.broken != Some(Broken::Label)),
            Property::<Self>::always(Broken::Removal.name(), |_, state| state.broken != Some(Broken::Removal)),
            Property::<Self>::always(Broken::Id.name(), |_, state| state.broken != Some(Broken::Id)),
            Property::<Self>::always(Broken::Answer.name(), |_, state| state.broken != Some(Broken::Answer)),
            Property::<Self>::always(Broken::Groups.name(), |_, state| state.broken != Some(Broken::Groups)),
            Property::<Self>::always(Broken::Alone.name(), |_, state| state.broken != Some(Broken::Alone)),
        ]
    }
}

/// The initial state: no active controller and no deployment; or the first controller is active, the first id is the
/// second operator's, and it is the traffic group's label.
fn first(scope: &Scope) -> State {
    let operators = usize::from(scope.operators);
    let nobody = |me| Controller { me, ..Controller::default() };
    let empty = State {
        controllers: [nobody(1), nobody(2)],
        operators: vec![Operator { incarnation: 1, ..Operator::default() }; operators],
        messages: Vec::new(),
        requests: Default::default(),
        used: 0,
        budget: scope.budget,
        is_excused: false,
        broken: None,
    };
    if !scope.is_deployed {
        return empty;
    }
    let (term, last, owner) = (Term { number: 1, controller: 1 }, Number { loading: 1, sequence: 1 }, 1);
    let operator = |place: u8| {
        let mut ids = [Rule::Unknown; IDS];
        ids[0] = if place == owner { Rule::Serve } else { Rule::At(owner) };
        let label = (place == LABELLER).then_some(0);
        let fresh = key(0) | if place == LABELLER { LABEL } else { 0 };
        Operator { incarnation: 1, term, last, ids, label, fresh, grouped: place == owner, heard: term }
    };
    let channel = |place: usize| {
        let is_grouped = place == usize::from(owner);
        let open = Channel { is_open: true, incarnation: Some(1), last, loading: 1, is_grouped, ..Channel::default() };
        if place < operators { open } else { Channel::default() }
    };
    let mut ids = [None; IDS];
    ids[0] = Some(RsNode { operator: Some(owner), used: Use::Serving });
    let active = Controller {
        role: Role::Active,
        term,
        highest: term,
        channels: std::array::from_fn::<_, OPERATORS, _>(channel),
        ids,
        in_force: Some(Some(0)),
        wanted: Some(0),
        target: Some(owner),
        ..nobody(1)
    };
    State {
        controllers: [active, nobody(2)],
        operators: (0..scope.operators).map(operator).collect(),
        used: 1,
        ..empty
    }
}

/// Searches a scope on `threads` threads.
#[must_use]
pub fn search(scope: &Scope, threads: usize, watch: &Watch) -> Verdict {
    let seen_bits = Arc::new(AtomicU8::new(0));
    let search = Search { scope: scope.clone(), watch: watch.clone(), seen: Arc::clone(&seen_bits) };
    let checker = search.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let refutation = checker.discoveries().into_iter().next().map(|(rule, path)| {
        let steps = path.into_actions().iter().map(ToString::to_string).collect();
        Refutation { rule, steps }
    });
    let bits = seen_bits.load(Ordering::Relaxed);
    let missing = seen::ALL.iter().filter(|(bit, _)| scope.must_see & !bits & bit != 0);
    Verdict {
        states: checker.unique_state_count(),
        depth: checker.max_depth().saturating_sub(1),
        exhaustive: refutation.is_none() && !watch.stops(),
        unseen: missing.map(|&(_, name)| name).collect(),
        refutation,
    }
}
