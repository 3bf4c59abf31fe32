//! RSNode ids. An id is reused only after all others, so that an operator that was out of reach meets an unknown id, not one that now means
//! another RSNode.

use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use std::collections::{BTreeMap, BTreeSet};

/// The state of an RSNode id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Operators learn of it.
    Preparing,
    /// Groups may be labelled with it.
    Serving,
    /// No group has had it since this time.
    Retiring(Nanos),
    /// Operators remove it.
    Removing,
    /// Quarantined: no operator has had it since this time.
    Quarantined(Nanos),
}

impl Use {
    /// In statuses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Serving => "serving",
            Self::Retiring(_) => "retiring",
            Self::Removing => "removing",
            Self::Quarantined(_) => "quarantined",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RsNode {
    /// `None`: no operator that this controller knows.
    pub(super) operator: Option<usize>,
    pub(super) used: Use,
}

impl RsNode {
    pub(super) fn is_known(&self) -> bool {
        matches!(self.used, Use::Preparing | Use::Serving | Use::Retiring(_))
    }
}

#[derive(Debug)]
pub(super) struct Ids {
    nodes: BTreeMap<u16, RsNode>,
    of: BTreeMap<usize, BTreeSet<u16>>,
    newest: u16,
    most: u16,
}

impl Ids {
    pub(super) fn new(most: u16) -> Self {
        Self { nodes: BTreeMap::new(), of: BTreeMap::new(), newest: 0, most }
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.of.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, RsNode)> {
        self.nodes.iter().map(|(&id, &node)| (id, node))
    }

    pub(super) fn get(&self, id: u16) -> Option<RsNode> {
        self.nodes.get(&id).copied()
    }

    pub(super) fn set(&mut self, id: u16, node: RsNode) {
        self.free(id);
        self.nodes.insert(id, node);
        if let Some(operator) = node.operator {
            self.of.entry(operator).or_default().insert(id);
        }
    }

    pub(super) fn set_use(&mut self, id: u16, used: Use) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.used = used;
        }
    }

    pub(super) fn free(&mut self, id: u16) {
        let operator = self.nodes.remove(&id).and_then(|node| node.operator);
        if let Some(ids) = operator.and_then(|operator| self.of.get_mut(&operator)) {
            ids.remove(&id);
        }
    }

    /// Records an id that others have used: new ones come after it.
    pub(super) fn note_used(&mut self, id: u16) {
        if id != 0 && (self.newest == 0 || is_after(id, self.newest, self.most)) {
            self.newest = id;
        }
    }

    pub(super) fn allocate(&mut self, operator: usize) -> Option<u16> {
        let next = |id: u16| if id >= self.most { 1 } else { id + 1 };
        let mut ids = std::iter::successors(Some(next(self.newest)), |&id| Some(next(id))).take(self.most.into());
        let id = ids.find(|id| !self.nodes.contains_key(id))?;
        self.newest = if planted(261) { 0 } else { id };
        self.set(id, RsNode { operator: Some(operator), used: Use::Preparing });
        Some(id)
    }

    pub(super) fn of(&self, operator: usize, is_it: impl Fn(Use) -> bool) -> Option<u16> {
        self.of.get(&operator)?.iter().copied().find(|&id| self.get(id).is_some_and(|node| is_it(node.used)))
    }
}

/// Whether `id` is within the half of the circle after `other`.
fn is_after(id: u16, other: u16, most: u16) -> bool {
    let most = u32::from(most.max(1));
    // Operators may know larger ids, of a configuration that had more.
    let ahead = (u32::from(id) % most + most - u32::from(other) % most) % most;
    ahead != 0 && ahead <= most / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n7_an_id_is_used_again_only_after_all_others() {
        let mut ids = Ids::new(4);
        assert_eq!((ids.allocate(0), ids.allocate(1)), (Some(1), Some(2)));
        ids.free(1);
        assert_eq!((ids.allocate(0), ids.allocate(0)), (Some(3), Some(4)));
        assert_eq!((ids.allocate(0), ids.allocate(0)), (Some(1), None), "2, 3 and 4 are in use");
        ids.free(3);
        assert_eq!(ids.allocate(0), Some(3));
    }

    /// 60,000 is from an earlier configuration with more ids.
    #[test]
    fn n8_ids_of_a_larger_configuration_break_nothing() {
        let mut ids = Ids::new(4_096);
        [60_000, 5, u16::MAX, 4_096].into_iter().for_each(|id| ids.note_used(id));
        let first = ids.allocate(0).unwrap();
        assert!((1..=4_096).contains(&first), "{first}");
    }

    #[test]
    fn n7_new_ids_come_after_those_of_the_controller_before() {
        let mut ids = Ids::new(10);
        [9, 1, 8].into_iter().for_each(|id| ids.note_used(id));
        assert_eq!(ids.allocate(0), Some(2), "1 is after 9 in the circle");
    }
}
