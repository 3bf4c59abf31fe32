//! Finds a switch's lost tasks in the frames of its interfaces: tasks that it acknowledged and never assigned. From the last frames of such
//! a task, and of others, it names the hazard of `docs/internals/asic-hazards.md`.

use crate::P4Error;
use crate::frame::{MF, UDP, byte, word16, word32};
use crate::ports::Port;
use midflight_wire::tasks::{Packet, parse};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// Bytes of frames that wait for evaluation.
const BUFFER: usize = 64 << 20;

/// A hazard of the published program, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    /// 1: stored beyond a repair of `add_ptr`, and overwritten.
    BeyondRepair = 1,
    /// 5: a search lost it, or found no place for it.
    Search = 5,
    /// 7: the packet that carried it was lost.
    PacketLost = 7,
    /// 8: its entry was read before it was written.
    ReadEarly = 8,
    /// 9: its room was computed from a wrong pointer, and another task has it.
    WrongRoom = 9,
}

/// A task's key, from its entry: the lower half of its SUBMIT's token, that SUBMIT's sequence, its index.
type Task = (u32, u32, u8);

#[derive(Debug, Default)]
struct Seen {
    /// How often the switch acknowledged it: each repeated SUBMIT queues its tasks again.
    taken: u32,
    assigned: u32,
    /// The search that had it last: its wait, and whether it reached its end.
    search: Option<(Wait, bool)>,
    /// Whether a repair of `add_ptr`, and of `retrieve_ptr`, came after it was taken.
    repairs: [bool; 2],
}

/// Slot, generation, sequence.
type Wait = (u32, u32, u32);

/// All that was seen since the switch began.
#[derive(Debug, Default)]
pub struct Trace {
    /// By client and sequence: the lower half of the token.
    submits: HashMap<(u64, u32), u32>,
    tasks: HashMap<Task, Seen>,
    /// Waits answered by "no task".
    refused: HashSet<Wait>,
    frames: u64,
}

impl Trace {
    /// Forgets everything, for a new switch: the previous one's state is gone (T9).
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// Number of the queue's frames seen.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Evaluates a frame that an interface has sent or received.
    pub fn frame(&mut self, frame: &[u8]) {
        if word16(frame, 12) != 0x0800 || byte(frame, 23) != 17 || !is_queue_s(frame) {
            return;
        }
        self.frames += 1;
        match byte(frame, MF + 3) {
            operation @ (200 | 202) => self.search(frame, operation == 202),
            operation @ (204 | 205) => {
                let which = usize::from(operation - 204);
                self.tasks.values_mut().for_each(|seen| seen.repairs[which] = true);
            }
            201 | 203 => {}
            _ => self.datagram(frame),
        }
    }

    fn datagram(&mut self, frame: &[u8]) {
        let length = usize::from(word16(frame, UDP + 4)).saturating_sub(MF - UDP);
        match frame.get(MF..MF + length).map(parse) {
            Some(Ok(Packet::Submit(submit, ..))) => {
                let token = submit.token.get() as u32;
                self.submits.insert((submit.client.get(), submit.header.sequence.get()), token);
            }
            Some(Ok(Packet::SubmitAck(ack))) => {
                let sequence = ack.header.sequence.get();
                let Some(&token) = self.submits.get(&(ack.client.get(), sequence)) else { return };
                for index in (0..32).filter(|index| ack.taken.get() >> index & 1 != 0) {
                    self.tasks.entry((token, sequence, index)).or_default().taken += 1;
                }
            }
            Some(Ok(Packet::Assign(_, assignments, _))) => {
                for task in assignments {
                    let name = (task.token.get() as u32, task.submission.get(), task.index);
                    self.tasks.entry(name).or_default().assigned += 1;
                }
            }
            Some(Ok(Packet::NoOp(_, waits))) => {
                let waits = waits.iter().map(|wait| (wait.slot.get(), wait.generation.get(), wait.sequence.get()));
                self.refused.extend(waits);
            }
            _ => {}
        }
    }

    /// Layout after the header: recirculation (8 bytes), counter, RETRIEVE, position (4), token, name, wait, assignment.
    fn search(&mut self, frame: &[u8], is_end: bool) {
        let at = MF + 24;
        let task = (word32(frame, at + 32), word32(frame, at + 108), byte(frame, at + 112));
        let wait = (word32(frame, at + 36), word32(frame, at + 40), word32(frame, at + 44));
        self.tasks.entry(task).or_default().search = Some((wait, is_end));
    }

    /// Tasks that were taken and never assigned, at the end of all work: counts by cause; `None`: unknown.
    #[must_use]
    pub fn losses(&self) -> BTreeMap<Option<Hazard>, u64> {
        let lost = self.tasks.values().filter(|seen| seen.taken > 0 && seen.assigned == 0);
        // Reading an entry too early assigns its former task a second time.
        let mut twice: u32 = self.tasks.values().map(|seen| seen.assigned.saturating_sub(seen.taken)).sum();
        let mut losses = BTreeMap::new();
        for seen in lost {
            let hazard = match (seen.search, seen.repairs) {
                (Some((_, true)), _) => Some(Hazard::Search),
                (Some((wait, _)), _) if self.refused.contains(&wait) => Some(Hazard::Search),
                (Some(_), _) => Some(Hazard::PacketLost),
                (None, _) if twice > 0 => {
                    twice -= 1;
                    Some(Hazard::ReadEarly)
                }
                (None, [true, _]) => Some(Hazard::BeyondRepair),
                (None, [_, true]) => Some(Hazard::WrongRoom),
                (None, _) => None,
            };
            *losses.entry(hazard).or_default() += 1;
        }
        losses
    }
}

/// Whether it is for or from the port of the queue, by the magic number of its datagram.
fn is_queue_s(frame: &[u8]) -> bool {
    word16(frame, MF) == midflight_wire::MAGIC
}

/// A socket that sees all frames of all interfaces of a network namespace, in both directions.
#[derive(Debug)]
pub struct Watch(Port);

impl Watch {
    /// Opens it in the namespace of this thread.
    ///
    /// # Errors
    /// If CAP_NET_RAW is missing.
    pub fn open() -> Result<Self, P4Error> {
        Port::all(BUFFER).map(Self)
    }

    /// Evaluates frames for this time.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn follow(&self, trace: &mut Trace, time: Duration) -> Result<(), P4Error> {
        let until = Instant::now() + time;
        loop {
            while let Some(frame) = self.0.next()? {
                trace.frame(&frame);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.0.wait(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Host;
    use midflight_wire::tasks::{Assign, Assignment, NoOp, Submit, SubmitAck, TaskInfo, Wait as Waits};
    use midflight_wire::{counting, packet};
    use zerocopy::FromZeros;

    const EPOCH: u32 = 7;

    fn frame(datagram: &[u8]) -> Vec<u8> {
        Host { mac: [2; 6], ip: 0x0A00_0001, port: 4000 }.to(([4; 6], 0x0A00_0002, 7700), datagram)
    }

    /// SUBMIT 1 of two tasks, both taken.
    fn taken() -> Trace {
        let mut trace = Trace::default();
        let submit = Submit { client: 5.into(), token: 6.into(), ..Submit::new(0, 1) };
        trace.frame(&frame(&packet(&submit, &[TaskInfo::PLAIN, TaskInfo::PLAIN])));
        let ack = SubmitAck { client: 5.into(), taken: 3.into(), ..SubmitAck::new(EPOCH, 1) };
        trace.frame(&frame(&counting(&ack, 2)));
        trace
    }

    fn assigned(index: u8) -> Vec<u8> {
        let mut task = Assignment::new_zeroed();
        (task.token, task.submission, task.index, task.task) = (6.into(), 1.into(), index, TaskInfo::PLAIN);
        frame(&packet(&Assign::new(EPOCH, 0), &[task]))
    }

    fn going_round(operation: u8, index: u8) -> Vec<u8> {
        let mut round = frame(&[0; 160]);
        round[MF..MF + 2].copy_from_slice(&midflight_wire::MAGIC.to_be_bytes());
        round[MF + 3] = operation;
        let at = MF + 24;
        (round[at + 35], round[at + 39], round[at + 43], round[at + 47]) = (6, 10, 11, 12);
        (round[at + 111], round[at + 112]) = (1, index);
        round
    }

    fn losses_after(frames: &[Vec<u8>]) -> Vec<(Option<Hazard>, u64)> {
        let mut trace = taken();
        frames.iter().for_each(|frame| trace.frame(frame));
        trace.losses().into_iter().collect()
    }

    #[test]
    fn what_is_assigned_is_not_lost() {
        assert_eq!(losses_after(&[assigned(0), assigned(1)]), []);
        let mut restarted = taken();
        restarted.restart();
        assert_eq!(restarted.losses().len(), 0, "T9");
    }

    #[test]
    fn t1_a_loss_has_the_name_of_its_hazard() {
        let wait = Waits { slot: 10.into(), generation: 11.into(), sequence: 12.into() };
        let no_op = frame(&packet(&NoOp::new(EPOCH, 0), &[wait]));
        for (frames, hazard) in [
            (vec![], None),
            (vec![going_round(204, 0)], Some(Hazard::BeyondRepair)),
            (vec![going_round(205, 0)], Some(Hazard::WrongRoom)),
            (vec![going_round(202, 1)], Some(Hazard::Search)),
            (vec![going_round(200, 1)], Some(Hazard::PacketLost)),
            (vec![going_round(200, 1), no_op], Some(Hazard::Search)),
            (vec![assigned(0)], Some(Hazard::ReadEarly)),
        ] {
            let frames = [&[assigned(0)], &frames[..]].concat();
            assert_eq!(losses_after(&frames), [(hazard, 1)], "{hazard:?}");
        }
    }
}
