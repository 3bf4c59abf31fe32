//! The controller's state of one operator: whether it is alive, and which rules it lacks.

use super::super::order::Key;
use midflight_dataplane::cache::Outcome;
use midflight_endpoint::Nanos;
use midflight_wire::cache::control::{Set, SetNumber, Term};
use std::collections::{BTreeMap, BTreeSet};

/// Whether orders may be sent to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not before its inventory has come.
    Unknown,
    Open,
}

/// Whether an operator may be in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barred {
    No,
    Failed,
    /// It has worked again since this time, and may be in a plan after `barred_for`.
    Back(Nanos),
}

#[derive(Debug)]
pub(super) struct Sent {
    pub(super) set: Set,
    /// Sorted.
    pub(super) keys: Vec<Key>,
    /// Labels among the orders: the operator may have them by now.
    pub(super) labels: Vec<u16>,
    pub(super) at: Nanos,
}

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) heard: Nanos,
    pub(super) heard_listened: Nanos,
    pub(super) is_dead: bool,
    /// Since when it answers questions but carries out no orders, by the clock of silence.
    pub(super) stuck_since: Option<Nanos>,
    /// Whether it was restarted and has not received all its rules yet.
    pub(super) is_fresh: bool,
    /// Whether it has sent its inventory in this term.
    pub(super) is_learned: bool,
    /// Since when it owes an inventory or the answer to orders, by the clock of silence.
    pub(super) owes_since: Option<Nanos>,
    pub(super) barred: Barred,
    pub(super) can_select: bool,
    /// The last question whose answer was accepted.
    pub(super) answered: u64,
    /// When it heard of an active controller, as far as a standby knows.
    pub(super) controller_heard: Option<Nanos>,
    pub(super) incarnation: Option<u64>,
    /// The previous incarnation, whose messages may still come.
    pub(super) former: Option<u64>,
    pub(super) term: Term,
    pub(super) selector: Option<u64>,
    /// Since when it has no selector, by the clock of silence.
    pub(super) selector_gone: Option<Nanos>,
    /// The selector that has the replica groups, or is receiving them.
    pub(super) grouped: Option<u64>,
    pub(super) state: State,
    pub(super) number: SetNumber,
    dirty: BTreeSet<Key>,
    urgent: BTreeSet<Key>,
    pub(super) sent: Option<Sent>,
    /// Whether it is receiving all rules; after the last one it removes all others.
    pub(super) is_loading: bool,
    /// Keys whose orders its core has refused, and why; `None`: an unknown outcome.
    pub(super) refused: BTreeMap<Key, Option<Outcome>>,
    /// Operators that it has refused to know as RSNodes since it last knew all RSNodes.
    pub(super) refused_owners: BTreeSet<usize>,
    /// It has refused several RSNodes, so it has failed itself and is not waited for.
    pub(super) is_refusing: bool,
    retried: BTreeSet<Key>,
    /// When refused orders are sent again.
    pub(super) retry_at: Nanos,
}

impl Channel {
    pub(super) fn new(now: Nanos, can_select: bool) -> Self {
        Self {
            heard: now,
            heard_listened: 0,
            is_dead: false,
            stuck_since: None,
            is_fresh: false,
            is_learned: false,
            owes_since: None,
            barred: Barred::No,
            can_select,
            answered: 0,
            controller_heard: None,
            incarnation: None,
            former: None,
            term: Term::NONE,
            selector: None,
            selector_gone: None,
            grouped: None,
            state: State::Unknown,
            number: SetNumber { loading: 1, sequence: 0 },
            dirty: BTreeSet::new(),
            urgent: BTreeSet::new(),
            sent: None,
            is_loading: false,
            refused: BTreeMap::new(),
            refused_owners: BTreeSet::new(),
            is_refusing: false,
            retried: BTreeSet::new(),
            retry_at: now,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        !self.is_dead && !self.is_stuck() && self.state == State::Open
    }

    /// Whether it could select now, barred or not.
    pub(super) fn is_able(&self) -> bool {
        self.is_live() && !self.is_refusing && self.can_select && self.selector.is_some()
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.stuck_since.is_some()
    }

    pub(super) fn is_barred(&self, now: Nanos, barred_for: Nanos) -> bool {
        let has_failed = match self.barred {
            Barred::No => false,
            Barred::Failed => true,
            Barred::Back(since) => now < since.saturating_add(barred_for),
        };
        let works = !self.is_dead && !self.is_stuck() && !self.is_refusing;
        has_failed || !works || !self.can_select || self.selector_gone.is_some()
    }

    /// Whether it lacks this, or may lack it.
    pub(super) fn lacks(&self, key: Key) -> bool {
        self.dirty.contains(&key)
            || self.urgent.contains(&key)
            || self.sent.as_ref().is_some_and(|sent| sent.keys.binary_search(&key).is_ok())
    }

    /// Whether others should wait until it knows this. A restarted operator gets its hosts last, so it passes nothing from them before it
    /// knows the rest.
    pub(super) fn will_learn(&self, key: Key) -> bool {
        let is_expected = !self.is_dead && !self.is_stuck() && !self.is_refusing && !self.is_fresh;
        is_expected && (self.state == State::Unknown || self.lacks(key) || self.refused.contains_key(&key))
    }

    /// Whether it has refused this although it has room.
    pub(super) fn refuses(&self, key: Key) -> bool {
        let is_told = self.is_live() && !self.is_refusing && !self.is_loading;
        is_told && self.refused.contains_key(&key) && !self.retried.contains(&key)
    }

    /// Whether it may lack this: an order for it waits, or was refused.
    pub(super) fn may_lack(&self, key: Key) -> bool {
        self.lacks(key) || self.refused.contains_key(&key)
    }

    /// Whether it may have what a removal under this key was to remove. It never had a rule beyond its bounds.
    pub(super) fn may_have(&self, key: Key) -> bool {
        self.lacks(key) || self.refused.get(&key).is_some_and(|outcome| *outcome != Some(Outcome::Bad))
    }

    pub(super) fn lacks_replica_groups(&self) -> bool {
        let is_one = |key: &Key| matches!(key, Key::ReplicaGroup(_) | Key::Selectors);
        self.dirty.range(Key::ReplicaGroup(0)..=Key::Selectors).next().is_some()
            || self.sent.as_ref().is_some_and(|sent| sent.keys.iter().any(is_one))
    }

    pub(super) fn is_up_to_date(&self) -> bool {
        self.state == State::Open && self.sent.is_none() && self.dirty.is_empty() && self.urgent.is_empty()
    }

    pub(super) fn need(&mut self, key: Key) {
        self.refused.remove(&key);
        self.retried.remove(&key);
        if self.state == State::Open && !self.urgent.contains(&key) {
            self.dirty.insert(key);
        }
    }

    /// The same, before all others.
    pub(super) fn need_at_once(&mut self, key: Key) {
        self.refused.remove(&key);
        self.retried.remove(&key);
        if self.state == State::Open {
            self.dirty.remove(&key);
            self.urgent.insert(key);
        }
    }

    /// A key stays refused until its order is carried out.
    pub(super) fn retry_refused(&mut self) {
        self.retried.extend(self.refused.keys());
        self.dirty.extend(self.refused.keys().filter(|key| !self.urgent.contains(key)));
    }

    /// Returns whether the refusal is new.
    pub(super) fn note_refusal(&mut self, key: Key, why: Option<Outcome>) -> bool {
        // Another order for the key is pending; its answer counts.
        if self.dirty.contains(&key) || self.urgent.contains(&key) {
            return true;
        }
        self.refused.insert(key, why);
        !self.retried.remove(&key)
    }

    pub(super) fn note_done(&mut self, key: Key) {
        if !self.dirty.contains(&key) && !self.urgent.contains(&key) {
            self.retried.remove(&key);
            self.refused.remove(&key);
        }
    }

    /// Forgets refused RSNodes, whose refusals are out of date.
    pub(super) fn forget_refusals(&mut self) {
        self.refused_owners.clear();
        self.is_refusing = false;
    }

    /// Its rules are unknown from now on.
    pub(super) fn close(&mut self) {
        self.state = State::Unknown;
        self.number = SetNumber { loading: self.number.loading.saturating_add(1), sequence: 0 };
        self.owes_since = None;
        self.sent = None;
        self.dirty.clear();
        self.urgent.clear();
        self.refused.clear();
        self.retried.clear();
        self.grouped = None;
        self.is_loading = false;
    }

    pub(super) fn begin_loading(&mut self, keys: impl Iterator<Item = Key>) {
        self.state = State::Open;
        self.owes_since = None;
        self.is_loading = true;
        self.dirty.extend(keys);
    }

    /// The next keys to send, and whether these complete all rules.
    pub(super) fn next(&mut self, batch: usize) -> (Vec<Key>, bool) {
        let from = if self.urgent.is_empty() { &mut self.dirty } else { &mut self.urgent };
        let keys: Vec<Key> = std::iter::from_fn(|| from.pop_first()).take(batch.max(1)).collect();
        let complete = self.is_loading && self.dirty.is_empty() && self.urgent.is_empty();
        (keys, complete)
    }
}
