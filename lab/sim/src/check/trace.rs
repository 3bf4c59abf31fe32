//! A run as text: time, node and event, a line each.

use super::Broken;
use crate::{Happening, NodeId};
use midflight_endpoint::Nanos;
use std::any::Any;
use std::collections::{HashMap, VecDeque};

const LINES: usize = 20_000;

/// Lines up to the turn in which a rule breaks.
#[derive(Debug)]
pub struct Trace {
    names: HashMap<NodeId, String>,
    lines: VecDeque<String>,
    broken: bool,
    ended: bool,
}

impl Trace {
    /// A trace with these node names.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = (NodeId, String)>) -> Self {
        Self { names: names.into_iter().collect(), lines: VecDeque::new(), broken: false, ended: false }
    }

    /// The kept lines, in order.
    #[must_use]
    pub fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }

    /// A node's name.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        self.names.get(&node).map_or("unknown", String::as_str)
    }

    /// Adds a line.
    pub fn line(&mut self, at: Nanos, text: &str) {
        if self.ended {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:>12.3} ms  {text}", at as f64 / 1e6));
    }

    /// Records a violation.
    pub fn broken(&mut self, at: Nanos, broken: &Broken) {
        self.line(at, &format!("BROKEN {broken}"));
        self.broken = true;
    }

    /// Ends a node's turn: after a violation in it, no line follows.
    pub fn turn_over(&mut self) {
        self.ended |= self.broken;
    }

    /// Records an event; `program` has words for its actors' records.
    pub fn happened(
        &mut self,
        at: Nanos,
        happening: &Happening<'_>,
        program: impl Fn(&Self, &dyn Any) -> Option<String>,
    ) {
        let text = match happening {
            Happening::Crashed { node } => format!("{} dies", self.name(*node)),
            Happening::Restarted { node } => format!("{} starts", self.name(*node)),
            Happening::Paused { node } => format!("{} stands still", self.name(*node)),
            Happening::Resumed { node } => format!("{} goes on", self.name(*node)),
            Happening::Moved { node, to } => format!("{} is at {to} now", self.name(*node)),
            Happening::Partitioned => "a partition begins".to_owned(),
            Happening::Healed => "partitions end".to_owned(),
            Happening::Program(what) => match program(self, *what) {
                Some(text) => text,
                None => return,
            },
        };
        self.line(at, &text);
    }
}
