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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Rule;

    const EXECUTOR: NodeId = NodeId(1);

    /// An executor with two bundles of resource 0 and one of resource 1; runs 1 and 2 have all.
    fn busy() -> Holders {
        let mut holders = Holders { counts: [(EXECUTOR, [2, 1, 0, 0, 0, 0, 0, 0])].into(), ..Holders::default() };
        holders.happened(&started(1, 0b111, &[(0, 0), (1, 0)])).unwrap();
        holders.happened(&started(2, 0b001, &[(0, 1)])).unwrap();
        holders
    }

    fn key(run: u32) -> RunKey {
        RunKey { slot: run, run }
    }

    fn started(run: u32, resources: u8, bundles: &[(u8, u16)]) -> TaskEvent {
        TaskEvent::Started {
            executor: EXECUTOR,
            run: key(run),
            client: None,
            jid: 0,
            tid: 0,
            attempt: 1,
            priority: 1,
            resources,
            bundles: bundles.iter().copied().collect(),
            argument: [0; 16],
            asked_for: 0,
            held_for: 0,
            waited_us: 0,
            far: false,
        }
    }

    fn breaks(mut holders: Holders, event: &TaskEvent) -> Option<Rule> {
        holders.happened(event).err().map(|broken| broken.rule)
    }

    #[test]
    fn t18_a_bundle_is_with_one_run() {
        assert_eq!(breaks(busy(), &started(3, 0b001, &[(0, 1)])), Some(T18));
        let mut ended = busy();
        ended.happened(&TaskEvent::Ended { executor: EXECUTOR, run: key(2), stopped: true }).unwrap();
        assert_eq!(breaks(ended, &started(3, 0b001, &[(0, 1)])), None);
        let mut crashed = busy();
        crashed.crashed(EXECUTOR);
        assert_eq!(breaks(crashed, &started(3, 0b011, &[(0, 0), (1, 0)])), None);
    }

    #[test]
    fn t18_a_run_has_what_it_requires_and_nothing_else() {
        let empty = || Holders { counts: [(EXECUTOR, [2, 1, 0, 0, 0, 0, 0, 0])].into(), ..Holders::default() };
        assert_eq!(breaks(empty(), &started(1, 0b011, &[(0, 0)])), Some(T18));
        assert_eq!(breaks(empty(), &started(1, 0b001, &[(0, 0), (1, 0)])), Some(T18));
        assert_eq!(breaks(empty(), &started(1, 0b001, &[(0, 2)])), Some(T18), "there are two");
        assert_eq!(breaks(empty(), &started(1, 0b100, &[])), None, "it is not counted");
    }
}
