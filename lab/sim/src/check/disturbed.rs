//! Nodes stopped by overlapping faults: each continues when the last of them ends.

use crate::{Action, NodeId, World};
use std::collections::HashMap;

/// Executes an action before any other event.
pub fn act(world: &mut World, action: Action) {
    let now = world.now();
    world.at(now, action);
    world.run(now, |_| false);
}

/// Number of faults that keep each node down, or paused.
#[derive(Debug, Default)]
pub struct Disturbed {
    down: HashMap<NodeId, u32>,
    paused: HashMap<NodeId, u32>,
}

impl Disturbed {
    /// A fault kills a process.
    pub fn crash(&mut self, world: &mut World, node: NodeId) {
        let down = self.down.entry(node).or_default();
        *down += 1;
        if *down == 1 {
            act(world, Action::Crash(node));
        }
    }

    /// That fault ends. The new process is paused if another fault has paused the node.
    pub fn restart(&mut self, world: &mut World, node: NodeId) {
        let down = self.down.entry(node).or_default();
        *down -= 1;
        if *down > 0 {
            return;
        }
        act(world, Action::Restart(node));
        if self.paused.get(&node).is_some_and(|paused| *paused > 0) {
            act(world, Action::Pause(node));
        }
    }

    /// A fault pauses a process.
    pub fn pause(&mut self, world: &mut World, node: NodeId) {
        let paused = self.paused.entry(node).or_default();
        *paused += 1;
        if *paused == 1 {
            act(world, Action::Pause(node));
        }
    }

    /// That fault ends.
    pub fn resume(&mut self, world: &mut World, node: NodeId) {
        let paused = self.paused.entry(node).or_default();
        *paused -= 1;
        if *paused == 0 {
            act(world, Action::Resume(node));
        }
    }
}
