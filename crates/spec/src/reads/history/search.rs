//! Looks for an order of a key's operations that explains all results: just-in-time linearization (Lowe, "Testing for
//! linearizability"), depth first, and no situation twice (Wing and Gong, as Lowe extends it).
//!
//! The search goes from one end of an operation to the next. By its end each operation must have been put in order, perhaps after
//! others that are under way. So a situation is: at which end, which of the operations under way have been put in order, and the
//! value. What ended long ago is not part of it; so quiescent moments part the history by themselves.
//!
//! Four rules keep it small, and lose nothing:
//! - an operation that has changed nothing is put in order as soon as its result fits the value: later is not better;
//! - an operation with an unknown outcome is put in order only if it changes the value, and something looks at what it wrote;
//! - of several that do the same, with unknown outcomes, the first one comes first;
//! - a situation is no better than another one that has used fewer operations with unknown outcomes, and is otherwise the same.

use super::Record;
use super::timeline::Timeline;
use std::collections::{BTreeSet, HashMap};

/// What the search found.
pub(super) enum Found {
    /// An order.
    Order,
    /// None: it never came past this end. The key may have had these values just before.
    None { at: usize, values: BTreeSet<Option<String>> },
    /// More situations than the bound. It has not come past this end yet.
    TooMuch { at: usize },
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Situation {
    /// The end that comes next.
    at: usize,
    /// The places of operations that have been put in order and have not ended.
    ordered: Bits,
    value: Option<String>,
    /// The last one in order has an unknown outcome, and nothing has looked at what it wrote.
    unseen: bool,
}

/// A situation, and which operations with unknown outcomes it has used.
type Case = (Situation, Bits);

#[derive(Clone, PartialEq, Eq, Hash)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn has(&self, bit: usize) -> bool {
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn flip(&mut self, bit: usize) {
        self.0[bit / 64] ^= 1 << (bit % 64);
    }

    fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }
}

/// The cases that have been looked at.
#[derive(Default)]
struct Seen {
    cases: HashMap<Situation, Vec<Bits>>,
    count: usize,
}

impl Seen {
    /// Whether nothing new can come of this.
    fn has(&self, (situation, used): &Case) -> bool {
        self.cases.get(situation).is_some_and(|all| all.iter().any(|fewer| fewer.is_within(used)))
    }

    fn add(&mut self, (situation, used): Case) {
        self.count += 1;
        self.cases.entry(situation).or_default().push(used);
    }
}

pub(super) fn search(timeline: &Timeline<'_>, situations_max: usize) -> Found {
    let first = Situation { at: 0, ordered: Bits::new(timeline.places_count), value: None, unseen: false };
    let mut stack = vec![(first, Bits::new(timeline.unknown.len()))];
    let (mut seen, mut furthest, mut values) = (Seen::default(), 0, BTreeSet::new());
    while let Some(mut case) = stack.pop() {
        let situation = &mut case.0;
        go_on(timeline, situation);
        if situation.at == timeline.ends.len() {
            return Found::Order;
        }
        if situation.at > furthest {
            furthest = situation.at;
            values.clear();
        }
        if situation.at == furthest && values.len() < VALUES_MAX {
            values.insert(situation.value.clone());
        }
        if seen.has(&case) {
            continue;
        }
        if seen.count >= situations_max {
            return Found::TooMuch { at: furthest };
        }
        push_next(timeline, &case, &mut stack);
        seen.add(case);
    }
    Found::None { at: furthest, values }
}

/// Values that are told of a violation.
const VALUES_MAX: usize = 16;

/// Does what needs no choice: puts in order what fits and changes nothing, and passes the ends of what has been put in order.
fn go_on(timeline: &Timeline<'_>, situation: &mut Situation) {
    while let Some(end) = timeline.ends.get(situation.at) {
        for &operation in &end.under_way {
            let (place, record) = (timeline.places[operation], timeline.records[operation]);
            let only_looks = record.result.as_ref().is_some_and(|result| record.call.is_read() || result.leaves_all());
            if only_looks && !situation.ordered.has(place) && next_value(record, situation).is_some() {
                situation.ordered.flip(place);
                situation.unseen = false;
            }
        }
        let place = timeline.places[end.operation];
        if !situation.ordered.has(place) {
            return;
        }
        situation.ordered.flip(place);
        situation.at += 1;
    }
}

/// The cases that may follow; the likeliest one last, where it is taken first.
fn push_next(timeline: &Timeline<'_>, case: &Case, stack: &mut Vec<Case>) {
    let (situation, used) = case;
    let end = &timeline.ends[situation.at];
    for (index, unknown) in timeline.unknown[..end.unknown].iter().enumerate() {
        let same_is_left = unknown.same_before.is_some_and(|before| !used.has(before));
        if used.has(index) || same_is_left {
            continue;
        }
        let Some(value) = value_after(timeline, unknown.operation, situation) else { continue };
        if value != situation.value {
            let mut used = used.clone();
            used.flip(index);
            stack.push((Situation { value, unseen: true, ..situation.clone() }, used));
        }
    }
    for &operation in end.under_way.iter().rev() {
        let place = timeline.places[operation];
        if situation.ordered.has(place) {
            continue;
        }
        let Some(value) = value_after(timeline, operation, situation) else { continue };
        let mut next = Situation { value, unseen: false, ..situation.clone() };
        next.ordered.flip(place);
        stack.push((next, used.clone()));
    }
}

/// The value after the operation; `None` if it cannot be the next one.
fn value_after(timeline: &Timeline<'_>, operation: usize, situation: &Situation) -> Option<Option<String>> {
    let record = timeline.records[operation];
    let hides_unseen = situation.unseen && !record.call.looks(record.result.as_ref());
    if hides_unseen { None } else { next_value(record, situation) }
}

/// The value after the operation; `None` if its result would have been another one.
fn next_value(record: &Record, situation: &Situation) -> Option<Option<String>> {
    let (outcome, value) = record.call.run(situation.value.as_deref());
    record.result.as_ref().is_none_or(|result| *result == outcome).then_some(value)
}
