//! An operator's RSNode ids and labels.

use super::Meanings;
use crate::cache::OperatorActor;
use midflight_cache::control::Term;
use midflight_dataplane::cache::Rule;
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) is_up: bool,
    pub(super) sets: u64,
    pub(super) term: Option<Term>,
    pub(super) ids: Meanings,
    pub(super) labels: BTreeMap<u16, u16>,
}

impl View {
    pub(super) fn up() -> Self {
        Self { is_up: true, ..Self::default() }
    }

    pub(super) fn of(operator: &OperatorActor, address: SocketAddr) -> Self {
        let keeper = operator.keeper();
        let mut view = Self { is_up: true, sets: keeper.counters().sets, term: Some(keeper.term()), ..Self::default() };
        for rule in keeper.rules() {
            match rule {
                Rule::Serve(id) => drop(view.ids.insert(id, address)),
                Rule::RsNode { id, operator: Some(at) } => drop(view.ids.insert(id, at)),
                Rule::Group { group, rsnode: Some(id) } => drop(view.labels.insert(group, id)),
                _ => {}
            }
        }
        view
    }

    /// Whether the operator's rules may have changed since.
    pub(super) fn is_old(&self, operator: &OperatorActor) -> bool {
        self.sets != operator.keeper().counters().sets
    }

    pub(super) fn has_label(&self, id: u16) -> bool {
        self.labels.values().any(|label| *label == id)
    }
}
