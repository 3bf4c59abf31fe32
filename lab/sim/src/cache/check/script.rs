//! Sets the rules of operators and selectors instead of a controller. It sees which processes run, notices deaths with
//! a delay, and changes the plan in the steps of `docs/internals/cache.md`, one step a look.

use super::run::CacheSubject;
use super::trial::Party;
use crate::Action;
use crate::cache::{ReplicaGroups, Rules, nodes};
use midflight_dataplane::cache::Rule;
use midflight_endpoint::{MS, Nanos, SECOND};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

pub(super) const LOOKS: Nanos = 5 * MS;
/// An answer's longest time: how long an RSNode id serves after its last label. (Selectors forget requests after a
/// second.)
const LONGEST: Nanos = 2 * SECOND;
/// RSNode ids are 1 to this, and are reused once all operators have removed them.
pub(super) const IDS: u16 = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Incarnation that has all its rules; 0: none.
    told: u64,
    down_since: Option<Nanos>,
    is_dead: bool,
}

impl Known {
    /// Looks at a process; `incarnation` is its number, if it runs. Returns whether it is new.
    fn look(&mut self, now: Nanos, detect: Nanos, incarnation: Option<u64>) -> bool {
        match incarnation {
            Some(number) => {
                self.down_since = None;
                self.is_dead = false;
                std::mem::replace(&mut self.told, number) != number
            }
            None => {
                let since = *self.down_since.get_or_insert(now);
                self.is_dead = now - since >= detect;
                false
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct RsNodeId {
    operator: usize,
    /// Since when all operators know it.
    since: Nanos,
    unused: Option<Nanos>,
}

/// The plan, and how far it is in force.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) is_dead: bool,
    pub(super) plan: u32,
    pub(super) degraded: BTreeSet<usize>,
    labels: Vec<Option<u16>>,
    ids: BTreeMap<u16, RsNodeId>,
    last_id: u16,
    operators: Vec<Known>,
    selectors: Vec<Known>,
    dead: BTreeSet<usize>,
}

impl Script {
    pub(super) fn new(operators: usize, groups: usize) -> Self {
        Self {
            is_dead: false,
            plan: 0,
            degraded: BTreeSet::new(),
            labels: vec![None; groups],
            ids: BTreeMap::new(),
            last_id: 0,
            operators: vec![Known::default(); operators],
            selectors: vec![Known::default(); operators],
            dead: BTreeSet::new(),
        }
    }

    /// The RSNode that the plan wants for a traffic group, if it serves.
    fn wanted(&self, group: usize) -> Option<usize> {
        let count = self.operators.len();
        if self.degraded.contains(&group) {
            return None;
        }
        let serves = |place: &usize| {
            let (operator, selector) = (self.operators[*place], self.selectors[*place]);
            !operator.is_dead && !selector.is_dead && operator.told != 0 && selector.told != 0
        };
        (0..count).map(|turn| (group * 5 + self.plan as usize + turn) % count).find(serves)
    }

    fn fresh(&mut self) -> Option<u16> {
        let ids = (0..IDS).map(|step| (self.last_id + step) % IDS + 1);
        let id = ids.into_iter().find(|id| !self.ids.contains_key(id))?;
        self.last_id = id;
        Some(id)
    }
}

impl CacheSubject {
    pub(super) fn operate(&mut self) {
        if self.script.is_dead {
            return;
        }
        self.look();
        self.tell_of_dead();
        self.prepare();
        self.flip();
        self.retire();
    }

    fn now(&self) -> Nanos {
        self.run.world.now()
    }

    fn operator_at(&self, place: usize) -> SocketAddr {
        self.run.world.address(self.run.node(Party::Operator(place)))
    }

    fn look(&mut self) {
        let (now, detect) = (self.now(), self.run.trial.detect_ms * MS);
        for place in 0..self.script.operators.len() {
            let world = &self.run.world;
            let operator = nodes::operator(world, self.run.node(Party::Operator(place))).map(|it| it.incarnation());
            let selector = nodes::selector(world, self.run.node(Party::Selector(place))).map(|it| it.incarnation());
            let was_dead = self.script.selectors[place].is_dead;
            if self.script.selectors[place].look(now, detect, selector) {
                let node = self.run.node(Party::Selector(place));
                self.run.act(Action::command(node, ReplicaGroups(self.replica_groups())));
            }
            let is_new = self.script.operators[place].look(now, detect, operator);
            if is_new {
                let rules = self.rules(place);
                self.tell(place, rules);
            } else if was_dead != self.script.selectors[place].is_dead {
                let own = self.own(place);
                self.tell(place, vec![own]);
            }
        }
    }

    fn tell(&mut self, place: usize, rules: Vec<Rule>) {
        let node = self.run.node(Party::Operator(place));
        self.run.act(Action::command(node, Rules(rules)));
    }

    /// For all that have their rules.
    fn tell_all(&mut self, rule: impl Fn(usize) -> Rule) {
        for place in 0..self.script.operators.len() {
            let operator = self.script.operators[place];
            if operator.told != 0 && operator.down_since.is_none() {
                self.tell(place, vec![rule(place)]);
            }
        }
    }

    fn replica_groups(&self) -> Vec<(u32, Vec<SocketAddr>)> {
        (0..).zip(self.groups.iter().cloned()).collect()
    }

    fn own(&self, place: usize) -> Rule {
        let rack = (place < self.run.trial.racks).then_some(place as u16);
        let selector = self.run.world.address(self.run.node(Party::Selector(place)));
        Rule::Own { rack, selector: (!self.script.selectors[place].is_dead).then_some(selector) }
    }

    /// All rules of an operator: hosts last, so that no answer is refused.
    fn rules(&self, place: usize) -> Vec<Rule> {
        let trial = &self.run.trial;
        let address = |party| self.run.world.address(self.run.node(party));
        let others = (0..trial.operators()).filter(|other| *other != place);
        let mut rules: Vec<Rule> = others.map(|other| Rule::Operator(self.operator_at(other))).collect();
        rules.extend((0..trial.racks).map(|rack| Rule::Rack {
            rack: rack as u16,
            operator: Some(self.operator_at(rack)),
            marker: self.marker(rack),
        }));
        rules.extend((0..trial.servers.len()).map(|server| Rule::Server {
            address: address(Party::Server(server)),
            rack: trial.rack_of_server(server) as u16,
        }));
        rules.extend(self.script.ids.keys().map(|&id| self.rsnode(id, place)));
        let groups = (0..).zip(&self.script.labels);
        rules.extend(groups.map(|(group, &rsnode)| Rule::Group { group, rsnode }));
        rules.push(self.own(place));
        rules.extend((0..trial.clients.len()).map(|client| Rule::Host {
            ip: address(Party::Client(client)).ip(),
            rack: trial.rack_of_client(client) as u16,
            group: Some(trial.group_of_client(client) as u16),
        }));
        rules
    }

    /// Two racks a pod; the pod is in the upper half.
    fn marker(&self, rack: usize) -> u32 {
        (rack as u32 / 2) << 16 | rack as u32
    }

    fn rsnode(&self, id: u16, place: usize) -> Rule {
        match self.script.ids.get(&id).map(|rsnode| rsnode.operator) {
            Some(operator) if operator == place => Rule::Serve(id),
            Some(operator) if self.script.operators[operator].is_dead => Rule::RsNode { id, operator: None },
            Some(operator) => Rule::RsNode { id, operator: Some(self.operator_at(operator)) },
            None => Rule::RsNode { id, operator: None },
        }
    }

    /// N6: requests and answers bypass a dead RSNode until it is back.
    fn tell_of_dead(&mut self) {
        let dead: BTreeSet<usize> =
            (0..self.script.operators.len()).filter(|place| self.script.operators[*place].is_dead).collect();
        let before = std::mem::replace(&mut self.script.dead, dead.clone());
        for changed in before.symmetric_difference(&dead) {
            let of_it = self.script.ids.iter().filter(|(_, rsnode)| rsnode.operator == *changed);
            for id in of_it.map(|(&id, _)| id).collect::<Vec<_>>() {
                let rules: Vec<Rule> = (0..self.script.operators.len()).map(|place| self.rsnode(id, place)).collect();
                self.tell_all(|place| rules[place]);
            }
        }
    }

    /// The id of this operator's RSNode, unless that is unused.
    fn id_of(&self, operator: usize) -> Option<u16> {
        let serves = |rsnode: &RsNodeId| rsnode.operator == operator && rsnode.unused.is_none();
        self.script.ids.iter().find(|(_, rsnode)| serves(rsnode)).map(|(&id, _)| id)
    }

    /// Assigns ids to new RSNodes and tells every operator.
    fn prepare(&mut self) {
        let wanted: BTreeSet<usize> =
            (0..self.script.labels.len()).filter_map(|group| self.script.wanted(group)).collect();
        for operator in wanted {
            if self.id_of(operator).is_some() {
                continue;
            }
            let Some(id) = self.script.fresh() else { continue };
            self.script.ids.insert(id, RsNodeId { operator, since: self.now(), unused: None });
            let rules: Vec<Rule> = (0..self.script.operators.len()).map(|place| self.rsnode(id, place)).collect();
            self.tell_all(|place| rules[place]);
        }
    }

    /// Sets the next traffic group's label that is not the wanted one.
    fn flip(&mut self) {
        for group in 0..self.script.labels.len() {
            let label = self.script.wanted(group).and_then(|operator| self.id_of(operator));
            let is_known = label.is_none_or(|id| self.script.ids[&id].since < self.now());
            if self.script.labels[group] != label && is_known {
                self.script.labels[group] = label;
                let rule = Rule::Group { group: group as u16, rsnode: label };
                return self.tell_all(|_| rule);
            }
        }
    }

    /// Removes RSNode ids without a label for long enough.
    fn retire(&mut self) {
        let (now, labels) = (self.now(), self.script.labels.clone());
        let wanted: Vec<_> = (0..labels.len()).filter_map(|group| self.script.wanted(group)).collect();
        for (id, rsnode) in &mut self.script.ids {
            let is_used = labels.contains(&Some(*id)) || (rsnode.unused.is_none() && wanted.contains(&rsnode.operator));
            rsnode.unused = if is_used { None } else { Some(rsnode.unused.unwrap_or(now)) };
        }
        let old = |rsnode: &RsNodeId| rsnode.unused.is_some_and(|since| now - since >= LONGEST);
        let gone: Vec<u16> = self.script.ids.iter().filter(|(_, rsnode)| old(rsnode)).map(|(&id, _)| id).collect();
        for id in gone {
            self.script.ids.remove(&id);
            self.tell_all(|_| Rule::RsNode { id, operator: None });
        }
    }

    pub(super) fn is_in_force(&self) -> bool {
        let script = &self.script;
        let is_wanted = |group: usize| {
            let label = script.wanted(group).and_then(|operator| self.id_of(operator));
            label.is_some() && script.labels[group] == label
        };
        let all_run = script.operators.iter().chain(&script.selectors).all(|known| known.down_since.is_none());
        all_run && (0..script.labels.len()).all(is_wanted)
    }
}
