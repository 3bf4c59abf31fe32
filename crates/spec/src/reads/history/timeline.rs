//! The operations on one key, along the time: what was under way at each end of an operation.

use super::{Call, Outcome, Record};
use std::collections::HashSet;

/// The operations on one key that may have taken effect, or whose result says something.
pub(super) struct Timeline<'a> {
    pub(super) records: Vec<&'a Record>,
    /// Each operation with a known outcome has a place in the bitmap of a situation, which is used again once it has ended.
    pub(super) places: Vec<usize>,
    pub(super) places_count: usize,
    /// The ends of operations, by time.
    pub(super) ends: Vec<End>,
    /// The operations whose outcome is not known, by start.
    pub(super) unknown: Vec<Unknown>,
}

/// The end of an operation.
pub(super) struct End {
    /// Which operation.
    pub(super) operation: usize,
    /// Operations with a known outcome that have begun and not ended: this one first.
    pub(super) under_way: Vec<usize>,
    /// How many of `unknown` have begun.
    pub(super) unknown: usize,
}

/// An operation whose outcome is not known.
pub(super) struct Unknown {
    pub(super) operation: usize,
    /// The last one before it that does as much, by its index here. It is taken first, for one is as good as the other.
    pub(super) same_before: Option<usize>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(mut records: Vec<&'a Record>) -> Self {
        records.retain(|record| match &record.result {
            Some(outcome) => *outcome != Outcome::Failed,
            None => !record.call.is_read(),
        });
        records.sort_by_key(|record| record.start_ns);
        let told = told_values(&records);
        let mut timeline =
            Self { places: vec![0; records.len()], records, places_count: 0, ends: Vec::new(), unknown: Vec::new() };
        timeline.go_along(&told);
        timeline
    }

    /// When the operation ended, if its outcome is known.
    pub(super) fn end(&self, operation: usize) -> Option<u64> {
        let record = self.records[operation];
        record.result.as_ref().and(record.end_ns)
    }

    fn go_along(&mut self, told: &HashSet<&str>) {
        let mut by_end: Vec<_> = (0..self.records.len()).filter(|&at| self.end(at).is_some()).collect();
        by_end.sort_by_key(|&at| self.end(at));
        let (mut begun, mut under_way, mut free) = (0, Vec::new(), Vec::new());
        for operation in by_end {
            // What begins when another ends may have come before it.
            while begun < self.records.len() && Some(self.records[begun].start_ns) <= self.end(operation) {
                self.begin(begun, told, &mut under_way, &mut free);
                begun += 1;
            }
            if let Some(at) = under_way.iter().position(|&other| other == operation) {
                under_way.swap(0, at);
            }
            let unknown = self.unknown.len();
            self.ends.push(End { operation, under_way: under_way.clone(), unknown });
            under_way.swap_remove(0);
            free.push(self.places[operation]);
        }
    }

    fn begin(&mut self, operation: usize, told: &HashSet<&str>, under_way: &mut Vec<usize>, free: &mut Vec<usize>) {
        if self.end(operation).is_some() {
            under_way.push(operation);
            self.places[operation] = free.pop().unwrap_or_else(|| {
                self.places_count += 1;
                self.places_count - 1
            });
            return;
        }
        let call = &self.records[operation].call;
        let does_same = |other: &Unknown| {
            let other = &self.records[other.operation].call;
            other == call || (puts_untold(other, told) && puts_untold(call, told))
        };
        let same_before = self.unknown.iter().rposition(does_same);
        self.unknown.push(Unknown { operation, same_before });
    }
}

/// The values that results and CAS tell from others.
fn told_values<'a>(records: &[&'a Record]) -> HashSet<&'a str> {
    let results = records.iter().filter_map(|record| match &record.result {
        Some(Outcome::Value(value) | Outcome::Conflict(value)) => Some(value.as_str()),
        _ => None,
    });
    let expected = records.iter().filter_map(|record| match &record.call {
        Call::Cas(expected, _) => Some(expected.as_str()),
        _ => None,
    });
    results.chain(expected).collect()
}

/// Whether the operation sets a value that nothing tells from another one: that of no result, and no number, for INCR would make
/// another of it.
fn puts_untold(call: &Call, told: &HashSet<&str>) -> bool {
    matches!(call, Call::Put(value) if !told.contains(value.as_str()) && value.parse::<i64>().is_err())
}
