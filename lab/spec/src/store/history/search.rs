//! Looks for an order of a key's operations that explains all results: just-in-time linearization (Lowe, "Testing for
//! linearizability"), depth first, visiting no situation twice (Wing and Gong, extended by Lowe; as in porcupine).
//!
//! The search goes from one end of an operation to the next. By its end, each operation must be in order, perhaps after
//! others that are under way. A situation is the set of operations in order, and the value.
//!
//! Four rules prune it without loss:
//! - an operation that changed nothing is put in order as soon as its result fits the value;
//! - an operation with an unknown outcome is put in order only if it changes the value, and another operation reads
//!   what it wrote;
//! - of equal operations with unknown outcomes, the first one comes first;
//! - a situation is dominated by an otherwise equal one that used fewer operations with unknown outcomes.
//!
//! The path to the current situation takes about 150 bytes an operation, plus its values; backtracking undoes its
//! steps. Of other situations only a hash is stored, with the operations with unknown outcomes that they used.

use super::Record;
use super::pending::{List, Pending};
use super::seen::{Seen, TooMuch, Used, flip, hash_of};
use super::timeline::Timeline;
use std::collections::BTreeSet;

pub(super) enum Found {
    Order,
    /// No order: the search never passed this end. Before it, the key may have had these values.
    None {
        at: usize,
        values: BTreeSet<Option<String>>,
    },
    /// The search reached a bound and has not passed this end yet.
    TooMuch {
        at: usize,
    },
}

const VALUES_MAX: usize = 16;
/// Tries between two looks at the clock.
const CLOCK_EVERY: u64 = 1024;

#[derive(Default)]
struct Situation {
    at: usize,
    value: Option<String>,
    /// The last operation in order has an unknown outcome, and nothing has read what it wrote.
    unseen: bool,
    /// Of the operations with a known outcome that are in order.
    hash: [u64; 2],
    untried: Untried,
    /// Length of `steps` at the previous situation.
    steps_before: usize,
}

/// The next candidate, likeliest first.
#[derive(Clone, Copy, Default)]
enum Untried {
    #[default]
    Ending,
    /// This value-changing operation under way, and all after it.
    UnderWay(Option<usize>),
    /// The kinds of operations with unknown outcomes before this one.
    Kinds(usize),
}

#[derive(Clone, Copy)]
enum Step {
    Known(usize),
    Unknown(usize),
}

struct Search<'a> {
    timeline: &'a Timeline<'a>,
    pending: Pending,
    used: Used,
    seen: Seen,
    /// The last one is the current situation.
    path: Vec<Situation>,
    steps: Vec<Step>,
    /// The furthest end that was not passed, and the values there.
    furthest: usize,
    values: BTreeSet<Option<String>>,
    is_late: &'a dyn Fn() -> bool,
    tries: u64,
}

/// Gives up when the stored situations exceed `bytes_max` or when `is_late` returns true.
pub(super) fn search(timeline: &Timeline<'_>, bytes_max: usize, is_late: &dyn Fn() -> bool) -> Found {
    let mut search = Search {
        timeline,
        pending: Pending::new(timeline),
        used: Used::new(timeline),
        seen: Seen::new(bytes_max),
        path: Vec::new(),
        steps: Vec::new(),
        furthest: 0,
        values: BTreeSet::new(),
        is_late,
        tries: 0,
    };
    match search.run() {
        Ok(true) => Found::Order,
        Ok(false) => Found::None { at: search.furthest, values: search.values },
        Err(TooMuch) => Found::TooMuch { at: search.furthest },
    }
}

impl Search<'_> {
    fn run(&mut self) -> Result<bool, TooMuch> {
        let mut next = Some(Situation::default());
        while let Some(mut situation) = next {
            self.go_on(&mut situation)?;
            if situation.at == self.timeline.ends.len() {
                return Ok(true);
            }
            if situation.at > self.furthest {
                self.furthest = situation.at;
                self.values.clear();
            }
            if situation.at == self.furthest && self.values.len() < VALUES_MAX {
                self.values.insert(situation.value.clone());
            }
            let key = hash_of((situation.hash, &situation.value, situation.unseen));
            if self.seen.add(key, &self.used)? {
                self.path.push(situation);
            } else {
                self.go_back(situation.steps_before);
            }
            next = self.next()?;
        }
        Ok(false)
    }

    /// Takes the steps without a choice: puts in order what fits and changes nothing, and passes the ends of what is in
    /// order.
    fn go_on(&mut self, situation: &mut Situation) -> Result<(), TooMuch> {
        while let Some(&ending) = self.timeline.ends.get(situation.at) {
            let mut look = self.pending.first(List::Looks);
            while let Some(operation) = look.filter(|&look| self.timeline.has_begun(look, situation.at)) {
                self.look_at_the_clock()?;
                look = self.pending.after(operation);
                if next_value(self.timeline.records[operation], situation).is_some() {
                    self.take(Step::Known(operation), situation);
                    situation.unseen = false;
                }
            }
            if self.pending.has(ending) {
                break;
            }
            situation.at += 1;
        }
        Ok(())
    }

    /// A successor of the last situation on the path that has one.
    fn next(&mut self) -> Result<Option<Situation>, TooMuch> {
        while let Some(mut situation) = self.path.pop() {
            while let Some((step, operation)) = self.choose(&mut situation) {
                self.look_at_the_clock()?;
                let value = value_after(self.timeline.records[operation], &situation);
                let unseen = matches!(step, Step::Unknown(_));
                let Some(value) = value.filter(|value| !unseen || *value != situation.value) else { continue };
                let (at, hash, steps_before) = (situation.at, situation.hash, self.steps.len());
                let mut next = Situation { at, value, unseen, hash, steps_before, untried: Untried::Ending };
                self.take(step, &mut next);
                self.path.push(situation);
                return Ok(Some(next));
            }
            self.go_back(situation.steps_before);
        }
        Ok(None)
    }

    fn look_at_the_clock(&mut self) -> Result<(), TooMuch> {
        self.tries += 1;
        let is_late = self.tries.is_multiple_of(CLOCK_EVERY) && (self.is_late)();
        if is_late { Err(TooMuch) } else { Ok(()) }
    }

    fn choose(&self, situation: &mut Situation) -> Option<(Step, usize)> {
        let (timeline, at) = (self.timeline, situation.at);
        loop {
            match situation.untried {
                Untried::Ending => {
                    situation.untried = Untried::UnderWay(self.pending.first(List::Changes));
                    return Some((Step::Known(timeline.ends[at]), timeline.ends[at]));
                }
                Untried::UnderWay(Some(operation)) if timeline.has_begun(operation, at) => {
                    situation.untried = Untried::UnderWay(self.pending.after(operation));
                    if operation != timeline.ends[at] {
                        return Some((Step::Known(operation), operation));
                    }
                }
                Untried::UnderWay(_) => situation.untried = Untried::Kinds(timeline.kinds.len()),
                Untried::Kinds(0) => return None,
                Untried::Kinds(end) => {
                    let kind = end - 1;
                    situation.untried = Untried::Kinds(kind);
                    match timeline.kinds[kind].get(self.used.count(kind)) {
                        Some(&operation) if timeline.has_begun(operation, at) => {
                            return Some((Step::Unknown(kind), operation));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn take(&mut self, step: Step, situation: &mut Situation) {
        match step {
            Step::Known(operation) => {
                self.pending.take_out(operation);
                flip(&mut situation.hash, operation);
            }
            Step::Unknown(kind) => self.used.add(kind),
        }
        self.steps.push(step);
    }

    fn go_back(&mut self, steps: usize) {
        for step in self.steps.drain(steps..).rev() {
            match step {
                Step::Known(operation) => self.pending.put_back(operation),
                Step::Unknown(kind) => self.used.remove(kind),
            }
        }
    }
}

/// The value after the operation; `None` if it cannot come next.
fn value_after(record: &Record, situation: &Situation) -> Option<Option<String>> {
    let hides_unseen = situation.unseen && !record.call.looks(record.result.as_ref());
    if hides_unseen { None } else { next_value(record, situation) }
}

/// The value after the operation; `None` if its result does not fit.
fn next_value(record: &Record, situation: &Situation) -> Option<Option<String>> {
    let (outcome, value) = record.call.run(situation.value.as_deref());
    record.result.as_ref().is_none_or(|result| *result == outcome).then_some(value)
}
