//! The nodes of a trial by their places in it.

use crate::NodeId;
use std::fmt::Debug;

/// A node, by its kind and its place among those of its kind.
pub trait Party: Copy + Eq + Debug + 'static {
    /// What people call its kind.
    fn kind(self) -> &'static str;

    /// Its place.
    fn place(&mut self) -> &mut usize;
}

/// Which node each party of a trial is.
#[derive(Clone, Debug)]
pub struct Places<P>(Vec<(P, NodeId)>);

impl<P> Default for Places<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P: Party> Places<P> {
    /// With these nodes, the parties of a kind.
    #[must_use]
    pub fn with(mut self, kind: fn(usize) -> P, nodes: &[NodeId]) -> Self {
        self.0.extend(nodes.iter().enumerate().map(|(place, node)| (kind(place), *node)));
        self
    }

    /// The node of a party.
    ///
    /// # Panics
    /// If the trial has no such party.
    #[must_use]
    pub fn node(&self, party: P) -> NodeId {
        self.find(party).expect("a trial is validated before it is run")
    }

    /// The nodes of a kind, in their order.
    pub fn of(&self, kind: fn(usize) -> P) -> impl Iterator<Item = NodeId> {
        (0..).map_while(move |place| self.find(kind(place)))
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (P, NodeId)> {
        self.0.iter().copied()
    }

    /// Who a node is, if it is one of the trial's parties.
    #[must_use]
    pub fn party(&self, node: NodeId) -> Option<P> {
        self.0.iter().find(|(_, other)| *other == node).map(|(party, _)| *party)
    }

    /// What a trace calls the nodes.
    pub fn names(&self) -> impl Iterator<Item = (NodeId, String)> {
        self.0.iter().map(|(party, node)| (*node, format!("{} {}", party.kind(), *(*party).clone().place())))
    }

    fn find(&self, party: P) -> Option<NodeId> {
        self.0.iter().find(|(other, _)| *other == party).map(|(_, node)| *node)
    }
}

/// The place of `party` once `gone` is not in the trial any more. `false`: it is the one that is gone.
pub fn keep<P: Party>(party: &mut P, mut gone: P) -> bool {
    if *party == gone {
        return false;
    }
    let is_behind = party.kind() == gone.kind() && *party.place() > *gone.place();
    *party.place() -= usize::from(is_behind);
    true
}

/// The same of a place whose kind is known.
pub fn keep_place<P: Party>(kind: fn(usize) -> P, place: &mut usize, gone: P) -> bool {
    let mut party = kind(*place);
    let is_kept = keep(&mut party, gone);
    *place = *party.place();
    is_kept
}
