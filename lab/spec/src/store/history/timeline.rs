//! The operations on one key over time: ended, under way, equal.

use super::{Call, Outcome, Record};
use std::collections::{HashMap, HashSet};

/// The operations on one key that may have taken effect or whose result tells something; indices refer to `records`.
pub(super) struct Timeline<'a> {
    pub(super) records: Vec<&'a Record>,
    pub(super) ends: Vec<usize>,
    /// Equal operations with unknown outcomes, by start. They are interchangeable, so the first is used first.
    pub(super) kinds: Vec<Vec<usize>>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(mut records: Vec<&'a Record>) -> Self {
        records.retain(|record| match &record.result {
            Some(outcome) => *outcome != Outcome::Failed,
            None => !record.call.is_read(),
        });
        records.sort_by_key(|record| record.start_ns);
        let (mut ends, unknown): (Vec<_>, Vec<_>) =
            (0..records.len()).partition(|&operation| end(records[operation]).is_some());
        ends.sort_by_key(|&operation| end(records[operation]));
        let kinds = kinds(&records, unknown);
        Self { records, ends, kinds }
    }

    /// Whether the operation has begun by this end. One that begins when another ends may precede it.
    pub(super) fn has_begun(&self, operation: usize, at: usize) -> bool {
        Some(self.records[operation].start_ns) <= end(self.records[self.ends[at]])
    }

    /// Operations that may have taken effect by this end and have not ended before it, without the one that ends.
    pub(super) fn under_way(&self, at: usize) -> impl Iterator<Item = usize> {
        let mut known = self.ends[at + 1..].to_vec();
        known.sort_unstable();
        let mut unknown = self.kinds.concat();
        unknown.sort_unstable();
        known.into_iter().chain(unknown).filter(move |&operation| self.has_begun(operation, at))
    }
}

fn end(record: &Record) -> Option<u64> {
    record.result.as_ref().and(record.end_ns)
}

fn kinds(records: &[&Record], unknown: Vec<usize>) -> Vec<Vec<usize>> {
    let told = told_values(records);
    let mut kinds: Vec<Vec<usize>> = Vec::new();
    let mut by_call = HashMap::new();
    for operation in unknown {
        let call = &records[operation].call;
        // All writes of indistinguishable values count as equal.
        let same = (!puts_untold(call, &told)).then_some(call);
        let kind = *by_call.entry(same).or_insert(kinds.len());
        if kind == kinds.len() {
            kinds.push(Vec::new());
        }
        kinds[kind].push(operation);
    }
    kinds
}

/// The values that results, CAS and expiry distinguish.
fn told_values<'a>(records: &[&'a Record]) -> HashSet<&'a str> {
    let results = records.iter().filter_map(|record| match &record.result {
        Some(Outcome::Value(value) | Outcome::Conflict(value)) => Some(value.as_str()),
        _ => None,
    });
    let expected = records.iter().filter_map(|record| match &record.call {
        Call::Cas(expected, _) | Call::Expire(expected) => Some(expected.as_str()),
        _ => None,
    });
    results.chain(expected).collect()
}

/// Whether the operation sets an indistinguishable value: one in no result, and no number, because INCR would change it
/// into another.
fn puts_untold(call: &Call, told: &HashSet<&str>) -> bool {
    matches!(call, Call::Put(value) if !told.contains(value.as_str()) && value.parse::<i64>().is_err())
}
