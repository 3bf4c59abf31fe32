//! Who plans for the controllers: mostly as production does, but it may be told to answer with any plan that keeps all constraints, and to
//! answer wrongly.

use midflight_control::replicas::PlanWanted;
use midflight_placement::{Instance, Options, Plan, Use, violations};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::Cell;
use std::rc::Rc;

/// Attempts to find a place for a traffic group by lot.
const TRIES: usize = 4;

/// How the planner of all controllers of a world answers from now on.
#[derive(Clone, Debug, Default)]
pub struct Planner(Rc<Cell<Mood>>);

/// How a planner answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mood {
    /// By lot, with any plan that keeps all constraints.
    pub is_free: bool,
    /// Half of its answers are wrong.
    pub is_wrong: bool,
}

/// What a planner says.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// Which plan it is said to be.
    pub(super) number: u64,
    pub(super) plan: Plan,
    /// It must not be taken.
    pub(super) is_wrong: bool,
}

impl Planner {
    /// How it answers.
    #[must_use]
    pub fn mood(&self) -> Mood {
        self.0.get()
    }

    /// It answers so from now on.
    pub fn set_mood(&self, mood: Mood) {
        self.0.set(mood);
    }

    /// Plans.
    pub(super) fn plan(&self, random: &mut Pcg64, wanted: &PlanWanted) -> Planned {
        // First fit takes no time limit, so a trial is repeated exactly.
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

/// A plan by lot that keeps all constraints: groups find their places one after the other, and what finds none by lot has that of `plan`.
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

/// A plan of another number, or one that breaks a constraint.
fn spoiled(random: &mut Pcg64, wanted: &PlanWanted, mut plan: Plan) -> Planned {
    let operators = wanted.instance.topology().operators().len();
    let (number, group) = (wanted.number, random.random_range(0..plan.rsnodes.len().max(1)));
    match random.random_range(0..6) {
        // One that is not asked for yet, and one that was.
        0 => return Planned { number: number + 1_000_000, plan, is_wrong: true },
        1 => return Planned { number: number.saturating_sub(1), plan, is_wrong: true },
        2 => drop(plan.rsnodes.pop()),
        3 => plan.rsnodes[group] = Some(operators),
        // All at one operator: which is not on the way of all, or gets too much, unless all fit there.
        4 => plan.rsnodes.fill(Some(random.random_range(0..operators))),
        _ => plan.rsnodes[group] = Some(random.random_range(0..operators)),
    }
    let is_wrong = !violations(&wanted.instance, &plan).is_empty();
    Planned { number, plan, is_wrong }
}
