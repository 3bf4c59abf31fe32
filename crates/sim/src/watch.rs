//! An omniscient watcher of one switch in a world without faults: it reads every packet in and out and checks the
//! rules that speak of order and exclusion.

use crate::actors::switch::{Took, Turn};
use crate::{NodeId, Observer};
use midflight_dataplane::{Out, Stats};
use midflight_tasks::Nanos;
use midflight_wire::{Assignment, Packet, TaskInfo, parse};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A task, as its client submitted it: client, submission, index.
type Name = (u64, u32, u8);
/// A wait: slot, generation, sequence.
type Wait = (u32, u32, u32);

/// What the switch must do next follows from what it took and gave so far.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Tasks that are not assigned, by level and resource mask, in the order of their acceptance.
    queued: BTreeMap<(u8, u8), VecDeque<Name>>,
    assigned: HashMap<Name, Wait>,
    /// Slots that wait, and their executor's resources.
    waiting: HashMap<u32, u8>,
}

impl Observer for Watch {
    fn switch_took(&mut self, _at: Nanos, _switch: NodeId, turn: &Turn<'_>) {
        if let Some(Took { datagram, .. }) = turn.took {
            self.packet(datagram, turn.gave, &turn.tasks.stats());
        }
    }
}

impl Watch {
    /// The switch took `datagram` and owes `out`.
    fn packet(&mut self, datagram: &[u8], out: &Out, stats: &Stats) {
        let Ok(packet) = parse(datagram) else { return };
        let resources = self.note_waits(&packet);
        let mut given = Vec::new();
        for (_, answer) in out.iter() {
            match (packet, parse(answer)) {
                (Packet::Submit(submit, tasks), Ok(Packet::SubmitAck(ack))) => {
                    let (client, sequence) = (submit.client.get(), submit.header.sequence.get());
                    for (i, task) in tasks.iter().enumerate().filter(|(i, _)| ack.taken.get() >> i & 1 == 1) {
                        self.accept((client, sequence, i as u8), task);
                    }
                }
                (_, Ok(Packet::Assign(_, assignments))) => given.extend_from_slice(assignments),
                _ => {}
            }
        }
        if matches!(packet, Packet::Submit(..)) {
            given.sort_by_key(|assignment| assignment.index); // the answers are grouped by executor
        }
        given.iter().for_each(|assignment| self.assign(assignment, resources));
        let queued: usize = self.queued.values().map(VecDeque::len).sum();
        let unserved = self
            .queued
            .iter()
            .filter(|(_, queue)| !queue.is_empty())
            .find(|((_, mask), _)| self.waiting.values().any(|resources| mask & !resources == 0));
        assert_eq!(unserved, None, "T6: no slot waits while there is a task that it may run");
        assert_eq!(queued, stats.queued.iter().map(|&n| n as usize).sum::<usize>(), "T1: queued or assigned");
    }

    /// Which slots wait now; the resources of a RETRIEVE.
    fn note_waits(&mut self, packet: &Packet<'_>) -> Option<u8> {
        match packet {
            Packet::Retrieve(retrieve, waits) => {
                self.waiting.extend(waits.iter().map(|wait| (wait.slot.get(), retrieve.resources)));
                Some(retrieve.resources)
            }
            Packet::Release(_, leaves) => {
                for leave in *leaves {
                    self.waiting.remove(&leave.slot.get());
                }
                None
            }
            _ => None,
        }
    }

    fn accept(&mut self, name: Name, task: &TaskInfo) {
        let known = self.assigned.contains_key(&name) || self.queued.values().any(|queue| queue.contains(&name));
        if !known {
            self.queued.entry((task.priority, task.resources)).or_default().push_back(name);
        }
    }

    /// `resources`: of the executor, where the assignment answers its RETRIEVE.
    fn assign(&mut self, assignment: &Assignment, resources: Option<u8>) {
        let name = (assignment.client.get(), assignment.submission.get(), assignment.index);
        let wait = (assignment.slot.get(), assignment.generation.get(), assignment.sequence.get());
        self.waiting.remove(&wait.0);
        if let Some(before) = self.assigned.insert(name, wait) {
            assert_eq!(before, wait, "T2: an assigned task is only repeated to the wait that has it");
            return;
        }
        let (level, mask) = (assignment.task.priority, assignment.task.resources);
        let queue = self.queued.entry((level, mask)).or_default();
        assert_eq!(queue.pop_front(), Some(name), "T3: the oldest of its level and mask");
        if let Some(resources) = resources {
            assert_eq!(mask & !resources, 0, "T5: the executor has what the task asks for");
            let higher = self
                .queued
                .iter()
                .find(|((other, mask), queue)| *other < level && mask & !resources == 0 && !queue.is_empty());
            assert_eq!(higher, None, "T4: no task of a higher level could have been given");
        }
    }
}
