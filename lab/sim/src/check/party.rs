//! The nodes of a trial, by kind and place.

use crate::NodeId;
use std::fmt::Debug;

/// A node, by its kind and its place within the kind.
pub trait Party: Copy + Eq + Debug + 'static {
    /// The kind's name.
    fn kind(self) -> &'static str;

    /// Its place within the kind.
    fn place(&mut self) -> &mut usize;
}

/// The node of each party.
#[derive(Clone, Debug)]
pub struct Places<P>(Vec<(P, NodeId)>);

impl<P> Default for Places<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P: Party> Places<P> {
    /// Adds the nodes of a kind.
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

    /// The nodes of a kind, in order.
    pub fn of(&self, kind: fn(usize) -> P) -> impl Iterator<Item = NodeId> {
        (0..).map_while(move |place| self.find(kind(place)))
    }

    /// All parties and their nodes.
    pub fn all(&self) -> impl Iterator<Item = (P, NodeId)> {
        self.0.iter().copied()
    }

    /// The party of a node, if it is one.
    #[must_use]
    pub fn party(&self, node: NodeId) -> Option<P> {
        self.0.iter().find(|(_, other)| *other == node).map(|(party, _)| *party)
    }

    /// Node names for a trace.
    pub fn names(&self) -> impl Iterator<Item = (NodeId, String)> {
        self.0.iter().map(|(party, node)| (*node, format!("{} {}", party.kind(), *(*party).clone().place())))
    }

    fn find(&self, party: P) -> Option<NodeId> {
        self.0.iter().find(|(other, _)| *other == party).map(|(_, node)| *node)
    }
}

/// Renumbers `party` after `gone` left the trial; `false`: it is the one that left.
pub fn keep<P: Party>(party: &mut P, mut gone: P) -> bool {
    if *party == gone {
        return false;
    }
    let is_behind = party.kind() == gone.kind() && *party.place() > *gone.place();
    *party.place() -= usize::from(is_behind);
    true
}

/// The same for a place of known kind.
pub fn keep_place<P: Party>(kind: fn(usize) -> P, place: &mut usize, gone: P) -> bool {
    let mut party = kind(*place);
    let is_kept = keep(&mut party, gone);
    *place = *party.place();
    is_kept
}
