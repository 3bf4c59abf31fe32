//! The keeper of an operator: takes numbered orders, has them carried out, and reports.
//!
//! It never sends first, so it needs no timer, and a broken stream loses only an answer.

use super::TERM_LEAP;
use super::order::{Key, rule};
use midflight_dataplane::cache::{Outcome, Rule, TIERS_MAX};
use midflight_endpoint::Nanos;
use midflight_wire::cache::control::{
    Ask, ControlMessage, Done, Inventory, Order, Refusal, Refused, Report, Set, SetNumber, TERM_MAX, Term,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The operator and its selector.
pub trait Parts {
    /// Sets a rule of the operator.
    fn set(&mut self, rule: Rule) -> Outcome;
    /// The monitor's counts of a traffic group, by the highest tier passed, the topmost first.
    fn request_counts(&self, group: u16) -> [u64; TIERS_MAX];
    /// Requests and copies of answers that went to the selector.
    fn load(&self) -> Load;
    /// Makes a replica group known to the selector.
    fn set_replica_group(&mut self, group: u32, servers: &[SocketAddr]) -> Outcome;
    /// Tells the selector the number of selectors.
    fn set_selectors(&mut self, selectors: u32);
}

/// The load of a selector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests that went to it.
    pub selected: u64,
    /// Copies of answers that went to it.
    pub copied: u64,
}

midflight_endpoint::counters! {
    /// Outcomes of messages.
    pub struct KeeperCounters {
        /// Questions that were answered.
        pub asked,
        /// SETs that were carried out.
        pub sets,
        /// SETs that had been carried out before.
        pub repeated,
        /// Messages of an older term than the current one.
        pub older_term,
        /// Messages of a term too far beyond the current one.
        pub impossible_term,
        /// SETs for this operator before its restart.
        pub other_incarnation,
        /// SETs before which others are missing, or after which others came.
        pub out_of_sequence,
        /// Orders that were not carried out.
        pub orders_refused,
        /// Rules that were removed because the new term did not set them.
        pub swept,
        /// Messages that no controller sends.
        pub foreign,
    }
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    rule: Rule,
    term: Term,
}

/// The operator's side of the protocol.
#[derive(Clone, Debug)]
pub struct RuleKeeper {
    incarnation: u64,
    selector: Option<u64>,
    term: Term,
    last: SetNumber,
    heard: Option<Nanos>,
    rules: BTreeMap<Key, Kept>,
    /// The traffic groups of its rack.
    groups: BTreeSet<u16>,
    last_rsnode: u16,
    last_refused: Vec<(u16, u8)>,
    counters: KeeperCounters,
}

impl RuleKeeper {
    /// The keeper of an operator without rules. `incarnation`: random, and not 0. `selector`: the same of its selector.
    #[must_use]
    pub fn new(incarnation: u64, selector: Option<u64>) -> Self {
        Self {
            incarnation: incarnation.max(1),
            selector,
            term: Term::NONE,
            last: SetNumber::default(),
            heard: None,
            rules: BTreeMap::new(),
            groups: BTreeSet::new(),
            last_rsnode: 0,
            last_refused: Vec::new(),
            counters: KeeperCounters::default(),
        }
    }

    /// The term that it follows.
    #[must_use]
    pub fn term(&self) -> Term {
        self.term
    }

    /// When it last heard a controller of that term; `None`: never.
    #[must_use]
    pub fn heard(&self) -> Option<Nanos> {
        self.heard
    }

    /// The number of its process.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The operator's selector, as last set.
    #[must_use]
    pub fn selector(&self) -> Option<u64> {
        self.selector
    }

    /// Outcomes of messages.
    #[must_use]
    pub fn counters(&self) -> KeeperCounters {
        self.counters
    }

    /// The rules that the operator has, in the order of their keys.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        self.rules.values().map(|kept| kept.rule)
    }

    /// Sets or removes the operator's selector. Without one, its requests go to their backups from now on.
    pub fn set_selector(&mut self, selector: Option<u64>, parts: &mut impl Parts) {
        self.selector = selector;
        if let Some(kept) = self.rules.get(&Key::Own) {
            let outcome = parts.set(self.own(kept.rule));
            self.counters.orders_refused += u64::from(outcome != Outcome::Done);
        }
    }

    /// Takes a message of a controller; returns its answer.
    #[must_use]
    pub fn handle(&mut self, now: Nanos, message: &ControlMessage, parts: &mut impl Parts) -> Option<ControlMessage> {
        match message {
            ControlMessage::Ask(ask) => Some(self.ask(now, ask, parts)),
            ControlMessage::Set(set) => Some(self.set(now, set, parts)),
            _ => {
                self.counters.foreign += 1;
                None
            }
        }
    }

    /// Whether to obey a message of this term; a later term becomes the current one.
    fn follows(&mut self, now: Nanos, term: Term) -> bool {
        if term < self.term {
            self.counters.older_term += 1;
            return false;
        }
        // A keeper that followed an impossible term would refuse every controller from then on.
        let most = if self.term == Term::NONE { TERM_MAX / 2 } else { self.term.number.saturating_add(TERM_LEAP) };
        if term.number > most {
            self.counters.impossible_term += 1;
            return false;
        }
        if term > self.term {
            self.term = term;
            self.begin(SetNumber::default());
        }
        self.heard = Some(now);
        true
    }

    /// From now on, refuses orders up to this number.
    fn begin(&mut self, last: SetNumber) {
        self.last = last;
        self.last_refused.clear();
    }

    fn refuse(&self, why: Refusal) -> ControlMessage {
        let Self { incarnation, term, last, .. } = *self;
        ControlMessage::Refused(Refused { incarnation, term, last, why })
    }

    fn ask(&mut self, now: Nanos, ask: &Ask, parts: &impl Parts) -> ControlMessage {
        if ask.term.is_some_and(|term| !self.follows(now, term)) {
            return self.refuse(Refusal::OlderTerm);
        }
        self.counters.asked += 1;
        if let Some(loading) = ask.inventory {
            // The inventory stays true: earlier orders that come late are refused.
            if ask.term.is_some() && loading > self.last.loading {
                self.begin(SetNumber { loading, sequence: 0 });
            }
            return ControlMessage::Inventory(self.inventory(ask.number));
        }
        let Self { incarnation, term, last, .. } = *self;
        let Load { selected, copied } = parts.load();
        ControlMessage::Report(Report {
            number: ask.number,
            incarnation,
            term,
            last,
            heard_ns: self.heard.map(|heard| now.saturating_sub(heard)),
            at_ns: now,
            selector: self.selector,
            selected,
            copied,
            counts: self.groups.iter().map(|&group| (group, parts.request_counts(group))).collect(),
        })
    }

    fn inventory(&self, number: u64) -> Inventory {
        let Self { incarnation, term, last, last_rsnode, .. } = *self;
        let (mut rsnodes, mut labels) = (Vec::new(), Vec::new());
        for kept in self.rules.range(Key::RsNode(0)..=Key::Group(u16::MAX)).map(|(_, kept)| kept) {
            match kept.rule {
                Rule::Serve(id) => rsnodes.push((id, None)),
                Rule::RsNode { id, operator: Some(operator) } => rsnodes.push((id, Some(operator))),
                Rule::Group { group, rsnode: Some(id) } => labels.push((group, id)),
                _ => {}
            }
        }
        Inventory { number, incarnation, term, last, last_rsnode, rsnodes, labels }
    }

    fn set(&mut self, now: Nanos, set: &Set, parts: &mut impl Parts) -> ControlMessage {
        // Before the term is followed: an order for an earlier incarnation must have no effect.
        if set.incarnation != self.incarnation {
            self.counters.other_incarnation += 1;
            return self.refuse(Refusal::OtherIncarnation);
        }
        if !self.follows(now, set.term) {
            return self.refuse(Refusal::OlderTerm);
        }
        let SetNumber { loading, sequence } = self.last;
        let next = sequence.checked_add(1).map(|sequence| SetNumber { loading, sequence });
        if set.number == self.last && sequence != 0 {
            self.counters.repeated += 1;
        } else if Some(set.number) != next {
            self.counters.out_of_sequence += 1;
            return self.refuse(Refusal::OutOfSequence);
        } else {
            self.carry_out(set, parts);
        }
        ControlMessage::Done(Done {
            incarnation: self.incarnation,
            term: self.term,
            number: self.last,
            selector: self.selector,
            refused: self.last_refused.clone(),
        })
    }

    fn carry_out(&mut self, set: &Set, parts: &mut impl Parts) {
        self.begin(set.number);
        self.counters.sets += 1;
        for (place, order) in set.orders.iter().enumerate() {
            let outcome = self.obey(order, parts);
            if outcome != Outcome::Done {
                self.counters.orders_refused += 1;
                self.last_refused.push((place as u16, outcome as u8));
            }
        }
        if set.complete {
            self.sweep(parts);
        }
        self.find_groups();
    }

    fn obey(&mut self, order: &Order, parts: &mut impl Parts) -> Outcome {
        match order {
            Order::ReplicaGroup { group, servers } => parts.set_replica_group(*group, servers),
            Order::Selectors(selectors) => {
                parts.set_selectors(*selectors);
                Outcome::Done
            }
            Order::Rule(record) => match rule(record) {
                Some(rule) => self.set_rule(rule, parts),
                None => Outcome::Bad,
            },
        }
    }

    fn set_rule(&mut self, rule: Rule, parts: &mut impl Parts) -> Outcome {
        let outcome = parts.set(if Key::of(&rule) == Some(Key::Own) { self.own(rule) } else { rule });
        if outcome == Outcome::Done {
            self.remember(rule);
        }
        outcome
    }

    /// Without a selector, its own rule has none.
    fn own(&self, rule: Rule) -> Rule {
        match rule {
            Rule::Own { rack, selector } => Rule::Own { rack, selector: selector.filter(|_| self.selector.is_some()) },
            other => other,
        }
    }

    fn remember(&mut self, rule: Rule) {
        match rule {
            Rule::Gone(address) => {
                self.rules.remove(&Key::Operator(address));
                self.rules.remove(&Key::Server(address));
                if address.port() == 0 {
                    self.rules.remove(&Key::Host(address.ip()));
                }
            }
            // An address belongs to an operator or to a server, not both.
            Rule::Operator(address) => drop(self.rules.remove(&Key::Server(address))),
            Rule::Server { address, .. } => drop(self.rules.remove(&Key::Operator(address))),
            Rule::Serve(id) | Rule::RsNode { id, operator: Some(_) } if !self.rules.contains_key(&Key::RsNode(id)) => {
                self.last_rsnode = id;
            }
            _ => {}
        }
        let Some(key) = Key::of(&rule) else { return };
        if key.removal() == Some(rule) {
            self.rules.remove(&key);
        } else {
            self.rules.insert(key, Kept { rule, term: self.term });
        }
    }

    /// Hosts first, operators last.
    fn sweep(&mut self, parts: &mut impl Parts) {
        let old = self.rules.iter().rev().filter(|(_, kept)| kept.term != self.term);
        let removals: Vec<Rule> = old.filter_map(|(key, _)| key.removal()).collect();
        for removal in removals {
            self.counters.swept += 1;
            let outcome = self.set_rule(removal, parts);
            self.counters.orders_refused += u64::from(outcome != Outcome::Done);
        }
    }

    fn find_groups(&mut self) {
        let Some(Rule::Own { rack: Some(own), .. }) = self.rules.get(&Key::Own).map(|kept| kept.rule) else {
            self.groups.clear();
            return;
        };
        let of_host = |kept: &Kept| match kept.rule {
            Rule::Host { rack, group, .. } if rack == own => group,
            _ => None,
        };
        self.groups = self.rules.values().filter_map(of_host).collect();
    }
}
