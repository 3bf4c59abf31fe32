//! Checks counted resources (T18): each run has one bundle of each that its task requires, and no two runs share one.
//! No fault excuses a violation.

use super::rules::*;
use crate::NodeId;
use crate::check::{Checked, holds};
use crate::tasks::TaskEvent;
use midflight_tasks::executor::{Bundles, RunKey};
use midflight_tasks::resources::RESOURCE_BITS;
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Holders {
    pub(super) counts: HashMap<NodeId, [u16; RESOURCE_BITS as usize]>,
    runs: HashMap<(NodeId, RunKey), Bundles>,
    held: HashMap<(NodeId, u8, u16), RunKey>,
}

impl Holders {
    pub(super) fn happened(&mut self, event: &TaskEvent) -> Checked {
        match event {
            TaskEvent::Started { executor, run, resources, bundles, .. } => {
                self.started(*executor, *run, *resources, *bundles)
            }
            TaskEvent::Ended { executor, run, .. } => {
                for (bit, number) in self.runs.remove(&(*executor, *run)).iter().flat_map(Bundles::iter) {
                    self.held.remove(&(*executor, bit, number));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn crashed(&mut self, node: NodeId) {
        self.runs.retain(|(executor, _), _| *executor != node);
        self.held.retain(|(executor, ..), _| *executor != node);
    }

    fn started(&mut self, executor: NodeId, run: RunKey, resources: u8, bundles: Bundles) -> Checked {
        let Some(counts) = self.counts.get(&executor) else { return Ok(()) };
        for bit in 0..RESOURCE_BITS {
            let (count, has) = (counts[usize::from(bit)], bundles.of(bit));
            let is_required = count > 0 && resources & 1 << bit != 0;
            let node = executor.index();
            holds!(T18, has.is_some() == is_required, "node {node} starts {run:?} with {has:?} of resource {bit}");
            let Some(number) = has else { continue };
            holds!(
                T18,
                number < count,
                "node {node} has {count} bundles of resource {bit}, and starts {run:?} with {number}"
            );
            let other = self.held.insert((executor, bit, number), run);
            holds!(
                T18,
                other.is_none(),
                "bundle {number} of resource {bit} of node {node} is with {run:?} and {other:?}"
            );
        }
        self.runs.insert((executor, run), bundles);
        Ok(())
    }
}
