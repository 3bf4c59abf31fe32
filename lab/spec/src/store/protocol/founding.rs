//! A separate model of how a set is founded: three members with disks, and every message sent. A message may arrive at
//! any time, repeatedly, or never. Any member may restart, or lose its disk and found again.
//!
//! The disks of its first members name a set. R2: two sets never share a disk. So no majority that knows what a lost
//! disk had acknowledged includes its former member.

use super::planted::Planted;
use super::scope::Scope;
use super::search::{Refutation, Verdict};
use midflight_rmt::Watch;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::BTreeSet;

const MEMBERS: usize = 3;

type Founders = [u8; MEMBERS];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Origin {
    Offers(u8),
    Accepts(Founders),
    Began(Founders),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Member {
    disk: u8,
    accepted: Option<Founders>,
    offers: [Option<u8>; MEMBERS],
    agreed: [bool; MEMBERS],
    has_begun: bool,
    /// It has heard of a set that it is not in.
    has_ended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    members: [Member; MEMBERS],
    said: BTreeSet<(u8, Origin)>,
    begun: BTreeSet<Founders>,
    drawn: u8,
    wipes: u8,
    restarts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Hear { member: u8, from: u8, origin: Origin },
    Restart(u8),
    Wipe(u8),
}

struct Search {
    scope: Scope,
    watch: Watch,
}

impl State {
    /// What a member says when it starts, and when its data changes.
    fn say(&mut self, member: usize) {
        let Member { disk, accepted, has_begun, .. } = self.members[member];
        self.said.insert((
            member as u8,
            match accepted {
                None => Origin::Offers(disk),
                Some(founders) if has_begun => Origin::Began(founders),
                Some(founders) => Origin::Accepts(founders),
            },
        ));
    }

    fn restart(&mut self, member: usize) {
        let Member { disk, accepted, .. } = self.members[member];
        let mut after = Member { disk, accepted, ..Member::default() };
        after.offers[member] = Some(disk);
        after.agreed[member] = accepted.is_some();
        self.members[member] = after;
        self.say(member);
    }

    fn wipe(&mut self, member: usize) {
        self.members[member] = Member { disk: self.drawn, ..Member::default() };
        self.drawn += 1;
        self.restart(member);
    }
}

impl Search {
    fn hear(&self, state: &mut State, member: usize, from: usize, origin: Origin) {
        let checks = !self.scope.has(Planted::FoundersUnchecked);
        let own = &mut state.members[member];
        match (origin, own.accepted) {
            (Origin::Offers(disk), None) => own.offers[from] = Some(disk),
            (Origin::Accepts(founders), None) if founders[member] == own.disk || !checks => {
                own.agreed[from] = true;
                own.accepted = Some(founders);
                own.agreed[member] = true;
            }
            (Origin::Began(founders), None) if !checks => own.accepted = Some(founders),
            (Origin::Accepts(_) | Origin::Began(_), None) => own.has_ended = true,
            (Origin::Accepts(founders), Some(ours)) if founders == ours => own.agreed[from] = true,
            (Origin::Began(founders), Some(ours)) if founders == ours => own.has_begun = true,
            // Ignored.
            _ => {}
        }
        self.go_on(state, member);
    }

    fn go_on(&self, state: &mut State, member: usize) {
        let alone = self.scope.has(Planted::FoundsAlone);
        let own = &mut state.members[member];
        if own.accepted.is_none() && !own.has_ended && (own.offers.iter().all(Option::is_some) || alone) {
            own.accepted = Some(own.offers.map(|disk| disk.unwrap_or(u8::MAX)));
            own.agreed[member] = true;
        }
        let is_agreed = own.agreed.iter().all(|agreed| *agreed) || self.scope.has(Planted::BeginsUnaccepted) || alone;
        own.has_begun |= own.accepted.is_some() && is_agreed;
        if let Some(founders) = own.accepted.filter(|_| own.has_begun) {
            state.begun.insert(founders);
        }
        state.say(member);
    }
}

impl Model for Search {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            members: Default::default(),
            said: BTreeSet::new(),
            begun: BTreeSet::new(),
            drawn: 0,
            wipes: self.scope.budget.wipes,
            restarts: self.scope.budget.replica_restarts,
        };
        (0..MEMBERS).for_each(|member| state.wipe(member));
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        self.watch.count();
        if self.watch.stops() {
            return;
        }
        for member in 0..MEMBERS as u8 {
            let heard = state.said.iter().filter(|(from, _)| *from != member);
            if !state.members[usize::from(member)].has_ended {
                steps.extend(heard.map(|&(from, origin)| Step::Hear { member, from, origin }));
            }
            steps.extend((state.restarts > 0).then_some(Step::Restart(member)));
            steps.extend((state.wipes > 0).then_some(Step::Wipe(member)));
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut after = state.clone();
        match step {
            Step::Hear { member, from, origin } => {
                self.hear(&mut after, usize::from(member), usize::from(from), origin);
            }
            Step::Restart(member) => {
                after.restarts -= 1;
                after.restart(usize::from(member));
            }
            Step::Wipe(member) => {
                after.wipes -= 1;
                after.wipe(usize::from(member));
            }
        }
        Some(after).filter(|after| after != state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let apart = Property::<Self>::always("R2", |_, state| {
            let shares = |one: &Founders, other: &Founders| one != other && one.iter().zip(other).any(|(a, b)| a == b);
            let own = |(place, member): (usize, &Member)| {
                !member.has_begun || member.accepted.is_some_and(|founders| founders[place] == member.disk)
            };
            state.members.iter().enumerate().all(own)
                && state.begun.iter().all(|one| state.begun.iter().all(|other| !shares(one, other)))
        });
        let begins = Property::<Self>::sometimes("begins", |_, state| {
            state.members.iter().all(|member| member.has_begun) && state.wipes == 0
        });
        if self.scope.planted.is_some() { vec![apart] } else { vec![apart, begins] }
    }
}

fn words(step: Step) -> String {
    match step {
        Step::Hear { member, from, origin } => {
            let what = match origin {
                Origin::Offers(disk) => format!("offers disk {disk}"),
                Origin::Accepts(founders) => format!("accepts the disks {founders:?}"),
                Origin::Began(founders) => format!("has begun with the disks {founders:?}"),
            };
            format!("replica {member} hears that replica {from} {what}")
        }
        Step::Restart(member) => format!("replica {member} restarts"),
        Step::Wipe(member) => format!("replica {member} loses its disk, and founds again"),
    }
}

pub(super) fn search(scope: &Scope, threads: usize, watch: &Watch) -> Verdict {
    let search = Search { scope: scope.clone(), watch: watch.clone() };
    let checker = search.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let refutation = checker.discoveries().into_iter().find(|(rule, _)| *rule == "R2").map(|(rule, path)| {
        let steps = path.into_actions().into_iter().map(words).collect();
        Refutation { rule, steps }
    });
    Verdict {
        states: checker.unique_state_count(),
        depth: checker.max_depth().saturating_sub(1),
        exhaustive: refutation.is_none() && !watch.stops(),
        refutation,
    }
}
