//! The controllers' planner: mostly production's, but it can be set to answer with any valid plan, or wrongly.

use midflight_cache::control::PlanWanted;
use midflight_placement::{Instance, Options, Plan, Use, violations};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::Cell;
use std::rc::Rc;

/// Random attempts to place a traffic group.
const TRIES: usize = 4;

/// The planner of all controllers of a world.
#[derive(Clone, Debug, Default)]
pub struct Planner(Rc<Cell<Mood>>);

/// How a planner answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mood {
    /// With a random plan that keeps all constraints.
    pub is_free: bool,
    /// Half of its answers are wrong.
    pub is_wrong: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) number: u64,
    pub(super) plan: Plan,
    pub(super) is_wrong: bool,
}

impl Planner {
    /// The current mood.
    #[must_use]
    pub fn mood(&self) -> Mood {
        self.0.get()
    }

    /// Sets the mood.
    pub fn set_mood(&self, mood: Mood) {
        self.0.set(mood);
    }

    pub(super) fn plan(&self, random: &mut Pcg64, wanted: &PlanWanted) -> Planned {
        // First fit has no time limit, so a trial is repeated exactly.
        let options = Options { methods: Use::FirstFit, ..Options::default() };
        let mut plan = wanted.solve(&options);
        let Mood { is_free, is_wrong } = self.mood();
        if is_free {
            plan = any_plan(random, &wanted.instance, plan);
        }
        if is_wrong && random.random_bool(0.5) {
            return spoiled(random, wanted, plan);
        }
        Planned { number: wanted.number, plan, is_wrong: false }
    }
}

/// A random plan that keeps all constraints; a group without a random place keeps that of `plan`.
fn any_plan(random: &mut Pcg64, instance: &Instance, plan: Plan) -> Plan {
    let mut any = plan;
    for group in 0..any.rsnodes.len() {
        let places: Vec<usize> = instance.on_path(group).collect();
        for _ in 0..TRIES.min(places.len()) {
            let before = any.rsnodes[group].replace(places[random.random_range(0..places.len())]);
            if violations(instance, &any).is_empty() {
                break;
            }
            any.rsnodes[group] = before;
        }
    }
    any
}

fn spoiled(random: &mut Pcg64, wanted: &PlanWanted, mut plan: Plan) -> Planned {
    let operators = wanted.instance.topology().operators().len();
    let (number, group) = (wanted.number, random.random_range(0..plan.rsnodes.len().max(1)));
    match random.random_range(0..6) {
        // A future number, and a past one.
        0 => return Planned { number: number + 1_000_000, plan, is_wrong: true },
        1 => return Planned { number: number.saturating_sub(1), plan, is_wrong: true },
        2 => drop(plan.rsnodes.pop()),
        3 => plan.rsnodes[group] = Some(operators),
        // All at one operator: not on the path of all, or overloaded, unless all fit there.
        4 => plan.rsnodes.fill(Some(random.random_range(0..operators))),
        _ => plan.rsnodes[group] = Some(random.random_range(0..operators)),
    }
    let is_wrong = !violations(&wanted.instance, &plan).is_empty();
    Planned { number, plan, is_wrong }
}
