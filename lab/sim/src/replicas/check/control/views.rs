//! The RSNode ids and labels that an operator has.

use super::Meanings;
use crate::replicas::OperatorActor;
use midflight_control::replicas::Term;
use midflight_dataplane::replicas::Rule;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What an operator has.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) is_up: bool,
    /// Orders that it has carried out.
    pub(super) sets: u64,
    pub(super) term: Option<Term>,
    /// The operator behind each id.
    pub(super) ids: Meanings,
    /// By traffic group.
    pub(super) labels: BTreeMap<u16, u16>,
}

impl View {
    /// Of an operator that has just started.
    pub(super) fn up() -> Self {
        Self { is_up: true, ..Self::default() }
    }

    /// Of an operator at this address.
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

    /// Whether the operator may have other rules by now.
    pub(super) fn is_old(&self, operator: &OperatorActor) -> bool {
        self.sets != operator.keeper().counters().sets
    }

    /// Whether a label names this id.
    pub(super) fn has_label(&self, id: u16) -> bool {
        self.labels.values().any(|label| *label == id)
    }
}
