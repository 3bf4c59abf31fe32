//! The instances to search, by name, for the tests, `midflight-lab check asic` and the pages.

mod endless;
mod sizes;

use super::{Instance, Network, Order, Verdict, run};
use crate::Watch;
use crate::tasks::published::{self, Empty, Published};
use crate::tasks::safe::{self, Guarded, Planted, Safe};
use crate::{Refusal, Target};

pub use endless::{Lasting, Turn, lasting};
pub use sizes::{Growth, grown, planted_grown};

const A: u8 = 1;
const B: u8 = 2;
/// Just before the serial numbers, and the pointers of two levels, wrap.
const START: u32 = u32::MAX - 2;
/// The checked rules of `docs/internals/tasks.md`, and that the work can end.
const CONTRACT: [&str; 7] = ["T1", "T2", "T3", "T4", "T5", "T7", "progress"];
/// Measured memory of a search per state, including unvisited ones.
const BYTES_A_STATE: u64 = 150;

/// A program, an instance, and the expected result of its search.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// Its subject, in a few words.
    pub about: &'static str,
    /// The searched program.
    pub program: Program,
    /// The clients, executors and their actions.
    pub instance: Instance,
    /// The rule that breaks, and in how many steps; `None` if it keeps all rules.
    pub finds: Option<(&'static str, usize)>,
    /// Approximate number of states, if the search takes longer than seconds.
    pub large: Option<u64>,
}

/// A program of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// [`Published`].
    Published(published::Config),
    /// [`Safe`].
    Safe(safe::Config),
    /// [`Guarded`]: the safe program with its front.
    Guarded(safe::Config),
    /// One of these two with a defect, which only a check builds.
    Planted(safe::Config, Planted),
}

/// Whether a search found the expected result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It found exactly the expected result.
    AsExpected,
    /// Another rule broke, or in fewer or more steps, or none.
    Otherwise,
    /// Nothing has broken so far; the search ended before it had seen all states.
    Open,
}

impl Named {
    /// Searches the instance, on this many threads.
    ///
    /// # Errors
    /// If the program does not fit the switch.
    pub fn search(&self, threads: usize, watch: &Watch) -> Result<Verdict, Refusal> {
        let (target, room) = (&Target::TOFINO_1, self.instance.room);
        Ok(match self.program {
            Program::Published(config) => run(Published::build(config, target)?, &self.instance, threads, watch),
            Program::Safe(config) => run(Safe::build(config, target)?.of_room(room), &self.instance, threads, watch),
            Program::Guarded(config) => run(Guarded::checked(config, target, None)?, &self.instance, threads, watch),
            Program::Planted(config, planted) if planted.is_of_front() => {
                run(Guarded::checked(config, target, Some(planted))?, &self.instance, threads, watch)
            }
            Program::Planted(config, planted) => {
                run(Safe::planted(config, target, planted)?.of_room(room), &self.instance, threads, watch)
            }
        })
    }

    /// Compares the result of a search with the expected one.
    #[must_use]
    pub fn judge(&self, verdict: &Verdict) -> Judgement {
        match (self.finds, verdict.violations.first()) {
            (_, None) if !verdict.exhaustive => Judgement::Open,
            (None, None) => Judgement::AsExpected,
            (Some(expected), Some(found)) if expected == (found.broken.rule, found.steps) => Judgement::AsExpected,
            // The search ended before it could find the expected number of steps.
            (Some((rule, steps)), Some(found))
                if !found.shortest && found.broken.rule == rule && found.steps > steps =>
            {
                Judgement::Open
            }
            _ => Judgement::Otherwise,
        }
    }

    /// Approximate memory of its search in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let (states, limit) = (self.large.unwrap_or(0), self.instance.limit);
        limit.map_or(states, |limit| states.min(limit as u64)) * BYTES_A_STATE
    }
}

/// All instances: those of the published program, then those of the safe one.
#[must_use]
pub fn all() -> Vec<Named> {
    [hazards(), hazards_of_four(), kept(), large_kept(), not_kept()].concat()
}

/// The safe program with each planted defect, in an instance in which it breaks no rule without one.
///
/// The registers' invariants, which find some defects sooner, are checked only if nothing else breaks: the others must break a rule for
/// clients and executors.
#[must_use]
pub fn planted() -> Vec<Named> {
    let kept = kept();
    let within = |name| kept.iter().find(|named| named.name == name).expect("an instance that breaks no rule");
    let of = |&planted: &Planted| {
        let within = within(planted.within());
        let (Program::Safe(config) | Program::Guarded(config)) = within.program else {
            unreachable!("{} is of the safe program", within.name)
        };
        let within_contract = planted.finds().is_none_or(|(rule, _)| CONTRACT.contains(&rule));
        let rules = within_contract.then(|| CONTRACT.to_vec());
        let instance = Instance { rules, ..within.instance.clone() };
        let (program, finds) = (Program::Planted(config, planted), planted.finds());
        Named { name: planted.name(), about: planted.about(), program, instance, finds, large: None }
    };
    Planted::ALL.iter().map(of).collect()
}

/// The instance of this name.
#[must_use]
pub fn named(name: &str) -> Option<Named> {
    all().into_iter().find(|named| named.name == name)
}

fn plain(jobs: &[usize]) -> Vec<Vec<(u8, u8)>> {
    jobs.iter().map(|&tasks| vec![(1, 0); tasks]).collect()
}

fn wants_a(jobs: &[usize]) -> Vec<Vec<(u8, u8)>> {
    jobs.iter().map(|&tasks| vec![(1, A); tasks]).collect()
}

/// Jobs, executors, and the one rule that the search checks.
fn only(rule: &'static str, jobs: Vec<Vec<(u8, u8)>>, executors: &[(u8, u8)]) -> Instance {
    Instance { jobs, executors: executors.to_vec(), rules: Some(vec![rule]), ..Instance::default() }
}

/// Its executors poll only while a task is queued.
fn informed(instance: Instance) -> Instance {
    Instance { informed: true, ..instance }
}

fn lossy(instance: Instance) -> Instance {
    Instance { drops: 1, ..instance }
}

fn published(size: u32) -> Program {
    Program::Published(published::Config { levels: 1, size, words: 1, empty: Empty::NoOp })
}

/// An instance of the published program, with this many entries.
fn hazard(name: &'static str, about: &'static str, size: u32, instance: Instance) -> Named {
    Named { name, about, program: published(size), instance, finds: None, large: None }
}

impl Named {
    /// The checked rule breaks in this many steps.
    fn breaks_in(self, steps: usize) -> Self {
        let held = self.instance.rules.as_ref().and_then(|rules| rules.first());
        Self { finds: held.map(|&rule| (rule, steps)), ..self }
    }

    fn large(self, states: u64) -> Self {
        Self { large: Some(states), ..self }
    }
}

/// `docs/internals/printed/asic-hazards.md` has the steps to each.
fn hazards() -> Vec<Named> {
    // No SUBMIT finds a full queue, and no executor polls an empty one.
    let no_error = Instance {
        jobs: vec![vec![(1, A), (1, B), (1, A)]],
        executors: vec![(B, 2), (A, 2), (A | B, 1)],
        rules: Some(vec!["T1", "T2", "T5", "T7", "progress"]),
        ..Instance::default()
    };
    let order = |instance, order| Instance { order: Some(order), ..instance };
    let overwritten = informed(only("T1", plain(&[3, 1, 1, 1]), &[(0, 2)]));
    let hole = informed(only("T4", plain(&[3, 1]), &[(0, 3)]));
    let lost = informed(only("T1", wants_a(&[1, 1, 1, 1]), &[(B, 1), (A, 1)]));
    let full = informed(only("T7", wants_a(&[2, 1]), &[(B, 1), (A, 1)]));
    let changed = order(informed(only("T3", wants_a(&[2]), &[(B, 1), (A, 1)])), Order::Kept);
    let broken = order(only("T3", plain(&[1, 1]), &[(0, 2)]), Order::Held);
    let flag = lossy(only("registers", plain(&[1]), &[(0, 1)]));
    let delay = lossy(only("progress", plain(&[1, 1]), &[(0, 2)]));
    let swap = lossy(informed(only("T1", wants_a(&[1]), &[(B, 1)])));
    let rest = lossy(only("T7", plain(&[2]), &[]));
    let again = lossy(Instance { timeouts: true, ..only("T2", plain(&[2]), &[]) });
    let halves = Instance { halves: true, ..only("T1", plain(&[1]), &[(0, 1)]) };
    let measured = only("T1", plain(&[1, 1, 1]), &[(0, 1)]);
    vec![
        hazard("hazard-1", "a task stored beyond the repair is overwritten", 2, overwritten).breaks_in(9),
        hazard("hazard-2", "each full is reported", 2, only("T7", plain(&[1, 2, 1, 1]), &[(0, 2)])),
        hazard("hazard-3", "a hole is taken for the end", 2, hole).breaks_in(7),
        hazard("hazard-5", "searches lose nothing while no pointer errs", 4, informed(no_error)),
        hazard("hazard-5-lost", "a search's task is lost", 2, lost).breaks_in(8),
        hazard("hazard-5-full", "a search's task meets a full queue", 2, full).breaks_in(6),
        hazard("hazard-5-order", "one search changes the order", 4, changed).breaks_in(5),
        hazard("hazard-6", "order breaks before the repair", 2, broken).breaks_in(4),
        hazard("hazard-7-repair", "a lost REPAIR leaves its flag up", 2, flag).breaks_in(3),
        hazard("hazard-7-delay", "a lost REPAIR delays, and the work can end", 4, delay),
        hazard("hazard-7-swap", "a lost SWAP loses its task", 2, swap).breaks_in(3),
        hazard("hazard-7-submit", "a lost rest of a job is silence", 2, rest).breaks_in(2),
        hazard("hazard-7-again", "a job sent again doubles its head", 2, again).breaks_in(3),
        hazard("hazard-8", "an entry is read before it is written", 2, halves).breaks_in(3),
        hazard("hazard-9", "room is measured from a pointer that erred", 2, measured).breaks_in(4),
    ]
}

/// The same with four entries, and pointers that wrap: no hazard exists only in the smallest queue.
fn hazards_of_four() -> Vec<Named> {
    let of = |name, about, instance| hazard(name, about, 4, Instance { start: START, ..instance });
    let overwritten = informed(only("T1", plain(&[4, 2, 1, 1]), &[(0, 2)]));
    let silence = Instance { retries: 1, ..only("T7", plain(&[4, 2, 2]), &[(0, 3)]) };
    let search = Instance {
        jobs: vec![vec![(1, A), (1, B)]; 2],
        executors: vec![(A, 2), (B, 2), (A | B, 2)],
        rules: Some(vec!["T1", "T2", "T5", "T7", "progress"]),
        ..Instance::default()
    };
    let lost = informed(only("T1", wants_a(&[4, 1, 1]), &[(B, 2), (A, 4)]));
    let flag = lossy(only("registers", wants_a(&[2, 1]), &[(B, 2), (A, 2)]));
    let measured = only("T1", plain(&[3, 2, 1]), &[(0, 2)]);
    vec![
        of("hazard-1-of-4", "hazard 1, four entries", overwritten).breaks_in(11),
        of("hazard-2-of-4", "each full is reported, four entries", silence),
        of("hazard-5-of-4", "searches lose nothing, two jobs", informed(search)),
        of("hazard-5-lost-of-4", "a search's task is lost, four entries", lost).breaks_in(12),
        of("hazard-7-repair-of-4", "a lost REPAIR leaves its flag up, four entries", flag).breaks_in(3),
        of("hazard-9-of-4", "hazard 9, four entries", measured).breaks_in(6),
    ]
}

/// An instance of the safe program with two levels of this many entries, whose serial numbers wrap; no rule breaks.
fn safe(
    name: &'static str,
    about: &'static str,
    size: u32,
    jobs: &[&[(u8, u8)]],
    retries: u8,
    executors: &[(u8, u8)],
) -> Named {
    let jobs = jobs.iter().map(|job| job.to_vec()).collect();
    let instance = Instance { start: START, jobs, retries, executors: executors.to_vec(), ..Instance::default() };
    let program = Program::Safe(safe::Config { levels: 2, size, words: 1 });
    Named { name, about, program, instance, finds: None, large: None }
}

/// Instances of the safe program that break no rule, each a search of seconds.
fn kept() -> Vec<Named> {
    let of = |levels, words, named| Named { program: Program::Safe(safe::Config { levels, size: 2, words }), ..named };
    let all: &[(u8, u8)] = &[(A, 2), (B, 2), (A | B, 1)];
    let crossing = |name, about| safe(name, about, 2, &[&[(1, A), (2, B)], &[(1, B)], &[(1, A)]], 0, all);
    let levels = safe("four-levels", "two search, at all levels", 2, &[&[(1, A), (3, B)], &[(4, A), (2, B)]], 0, all);
    // Enough for late credit: after a packet read it, others fill the queue again before it arrives.
    let ordered: &[&[(u8, u8)]] = &[&[(1, 0), (1, 0)], &[(1, 0)], &[(1, 0), (2, 0)]];
    let searched: &[&[(u8, u8)]] = &[&[(1, A), (1, B)], &[(1, A), (2, B)], &[(1, B), (1, 0)]];
    let (one, two) = ("one searches: the queue stays in order", &[(B, 2), (A | B, 2)]);
    let credit: &[&[(u8, u8)]] = &[&[(2, 0)], &[(1, 0), (1, 0)], &[(2, 0), (1, 0)]];
    let lacking: &[&[(u8, u8)]] = &[&[(1, A), (1, 0)], &[(2, A)]];
    vec![
        safe("ordered-small", "nobody searches", 2, ordered, 1, &[(0, 2), (0, 1)]),
        safe("kept-small", one, 4, &[&[(1, A), (1, B)], &[(1, A)]], 0, two),
        safe("credit-small", "a level has credit that another lacks", 2, credit, 0, &[(0, 1)]),
        safe("lacking-small", "an executor without resources", 2, lacking, 0, &[(0, 2), (A, 2)]),
        crossing("crossing-small", "two search, and cross"),
        of(2, 4, crossing("crossing-wide", "the same with whole arguments")),
        of(4, 1, levels),
        safe("kept", "one of three searches, four entries", 4, searched, 1, &[(B, 3), (A | B, 3), (A | B, 2)]),
        network(
            "network-small",
            "packets and answers lost, late, copied",
            2,
            &[&[(1, 0)], &[(1, 0), (2, 0)]],
            &[(0, 2); 2],
        ),
        network("network-search", "the same, and one searches", 2, &[&[(1, A)], &[(1, B)]], &[(A, 2), (A | B, 2)]),
    ]
}

/// The same with the front, and a network with two faults, or early time-outs.
fn network(name: &'static str, about: &'static str, size: u32, jobs: &[&[(u8, u8)]], executors: &[(u8, u8)]) -> Named {
    let named = safe(name, about, size, jobs, 0, executors);
    let Program::Safe(config) = named.program else { unreachable!("it is safe") };
    let network = Some(Network { faults: 2, arrivals: 2, early: true, strict: false });
    // An executor that repeats too early runs two searches at a time.
    let order = (named.instance.order() == Order::Kept).then_some(Order::Held);
    Named { program: Program::Guarded(config), instance: Instance { network, order, ..named.instance }, ..named }
}

/// The same, each a search of minutes.
fn large_kept() -> Vec<Named> {
    let ordered: &[&[(u8, u8)]] = &[&[(1, 0), (2, 0), (1, 0)], &[(1, 0), (1, 0)], &[(2, 0), (1, 0)]];
    let crossing: &[&[(u8, u8)]] = &[&[(1, A), (2, B)], &[(1, A), (1, B)], &[(1, B), (2, 0)]];
    let batches: &[&[(u8, u8)]] = &[&[(1, A), (1, B), (2, A)], &[(1, B), (1, A)], &[(1, 0), (2, 0)]];
    let lost: &[&[(u8, u8)]] = &[&[(1, A), (2, B)], &[(1, B)]];
    let (full, all) = ("a queue of two that is full most of the time", &[(A, 2), (B, 2), (A | B, 2)]);
    vec![
        safe("ordered", "three that do not search", 2, ordered, 1, &[(0, 3); 3]).large(1_908_138),
        safe("crossing", "two of three search, four entries", 4, crossing, 1, &[(A, 3), (B, 3), (A | B, 2)])
            .large(3_065_389),
        safe("batches", full, 2, batches, 1, all).large(12_160_666),
        network("network", "the network errs, and one searches at two levels", 2, lost, &[(A, 2), (A | B, 2)])
            .large(259_614),
    ]
}

/// The rules that the safe program does not keep: `docs/internals/printed/asic.md` has the steps to each.
fn not_kept() -> Vec<Named> {
    let program = Program::Safe(safe::Config { levels: 1, size: 4, words: 1 });
    let one = |name, about, instance| Named { name, about, program, instance, finds: None, large: None };
    // An executor that could run these tasks does not ask.
    let order = Instance { order: Some(Order::Kept), ..only("T3", wants_a(&[3]), &[(B, 1), (B, 1), (A, 0)]) };
    let swap = lossy(only("T1", wants_a(&[1]), &[(B, 1)]));
    let place = lossy(only("registers", wants_a(&[1]), &[(B, 1)]));
    let rest = lossy(only("T7", plain(&[2]), &[]));
    let again = lossy(Instance { timeouts: true, ..only("T2", plain(&[2]), &[]) });
    let network = Some(Network { faults: 1, arrivals: 2, early: false, strict: true });
    let copied = Instance { network, ..only("T2", plain(&[1]), &[(0, 2)]) };
    let network = Some(Network { faults: 1, arrivals: 1, early: true, strict: false });
    let repeated = Instance { network, order: Some(Order::Kept), ..only("T3", wants_a(&[1, 1]), &[(B, 2)]) };
    let front = Program::Guarded(safe::Config { levels: 1, size: 4, words: 1 });
    vec![
        Named { program: front, ..one("copied-submit", "a copy of a SUBMIT queues its task again", copied) }
            .breaks_in(4),
        Named { program: front, ..one("repeated-search", "one executor searches twice at a time", repeated) }
            .breaks_in(8),
        one("order-of-crossing", "searches that cross change the order", order).breaks_in(8),
        one("lost-swap", "a lost SWAP loses its task", swap).breaks_in(3),
        one("lost-place", "and one place of the queue", place).breaks_in(3),
        one("lost-rest", "a lost rest of a SUBMIT is silence", rest).breaks_in(2),
        one("lost-rest-again", "a SUBMIT sent again doubles its head", again).breaks_in(3),
    ]
}
