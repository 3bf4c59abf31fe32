//! Contents of a recirculated packet, as laid out by the headers of `p4/headers.p4`.

use super::{Task, Wait, level};
use crate::around::ROUND;
use crate::frame::{IP, MF, UDP, byte, word16, word32};

/// Operations that only the switch itself sends.
pub(super) const SWAP: u8 = 200;
pub(super) const REST: u8 = 201;
pub(super) const BACK: u8 = 202;
pub(super) const OWE_NO_OP: u8 = 203;
pub(super) const REPAIR_ADD: u8 = 204;
pub(super) const REPAIR_RETRIEVE: u8 = 205;

/// Offset after the header of the records of REST and of the task of a search.
const RECORD: usize = 48;
const TASK: usize = 36;

/// The operation, and all fields that later passes read: name, value, and in the frame the offset after the header and the bytes.
pub(super) struct Carried {
    pub(super) operation: u8,
    fields: Vec<(&'static str, u32, usize, usize)>,
    sender: Option<(u32, u16)>,
    sequence: Option<u32>,
}

/// The rest of a SUBMIT.
pub(super) struct Rest {
    pub(super) sequence: u32,
    pub(super) left: u32,
    pub(super) bit: u32,
    pub(super) taken: u32,
    pub(super) refused: u32,
    pub(super) why: u32,
    pub(super) credit: (u32, u32),
    pub(super) index: u32,
    pub(super) token: u32,
    pub(super) task: Task,
}

/// A search, with its task.
pub(super) struct Search {
    pub(super) level: u32,
    pub(super) resources: u32,
    /// In the published program, `retrieve_ptr` when `at` was set.
    pub(super) seen: Option<u32>,
    pub(super) at: u32,
    pub(super) wait: Wait,
    pub(super) token: u32,
    pub(super) submission: u32,
    pub(super) index: u32,
    pub(super) client: (u32, u16),
    pub(super) task: Task,
}

impl Carried {
    fn new(operation: u8) -> Self {
        Self { operation, fields: Vec::new(), sender: None, sequence: None }
    }

    pub(super) fn named(&self) -> &'static str {
        match self.operation {
            SWAP => "SWAP",
            REST => "REST",
            BACK => "BACK",
            OWE_NO_OP => "OWE_NO_OP",
            REPAIR_ADD => "REPAIR_ADD",
            REPAIR_RETRIEVE => "REPAIR_RETRIEVE",
            _ => "RETRIEVE of another level",
        }
    }

    /// With this sender, whose address the frame still has.
    pub(super) fn from(mut self, sender: (u32, u16)) -> Self {
        self.sender = Some(sender);
        self
    }

    pub(super) fn rest(rest: &Rest) -> Self {
        let mut carried = Self::new(REST);
        carried.sequence = Some(rest.sequence);
        carried.fields.extend([
            ("left", rest.left, 3, 1),
            ("bit", rest.bit, 4, 4),
            ("taken", rest.taken, 16, 4),
            ("refused", rest.refused, 20, 4),
            ("why", rest.why, 24, 1),
            ("credit_of", rest.credit.0, 25, 1),
            ("index", rest.index, 26, 1),
            ("credit", rest.credit.1, 28, 4),
            ("token", rest.token, 36, 4),
        ]);
        carried.task(&rest.task, RECORD);
        carried
    }

    /// A RETRIEVE for another level.
    pub(super) fn retrieve(level: u32, resources: u32, wait: &Wait) -> Self {
        let mut carried = Self::new(midflight_wire::tasks::Operation::Retrieve as u8);
        carried.asker(level, resources, wait, 16);
        carried
    }

    /// A search; or, in the published program, its result: the task without a place.
    pub(super) fn search(operation: u8, search: &Search) -> Self {
        let mut carried = Self::new(operation);
        carried.asker(search.level, search.resources, &search.wait, 24);
        let [high, low] = search.client.1.to_be_bytes().map(u32::from);
        carried.fields.extend(search.seen.map(|seen| ("seen", seen, 4, 4)));
        carried.fields.extend([
            ("at", search.at, 16, 4),
            ("token", search.token, 20, 4),
            ("client_ip", search.client.0, 64, 4),
            ("client_port_high", high, 68, 1),
            ("client_port_low", low, 69, 1),
            ("submission", search.submission, 72, 4),
            ("index", search.index, 76, 1),
        ]);
        carried.task(&search.task, TASK);
        carried
    }

    /// An executor that gets no task.
    pub(super) fn owed_no_op(wait: &Wait) -> Self {
        let mut carried = Self::new(OWE_NO_OP);
        carried.waits(wait, 24);
        carried
    }

    /// A pointer's new value.
    pub(super) fn repair(operation: u8, level: u32, word: u32) -> Self {
        let mut carried = Self::new(operation);
        carried.fields.extend([("level", level, 2, 1), ("word", word, 4, 4)]);
        carried
    }

    fn asker(&mut self, level: u32, resources: u32, wait: &Wait, at: usize) {
        self.fields.extend([("level", level, 2, 1), ("resources", resources, 8, 1)]);
        self.waits(wait, at);
    }

    fn waits(&mut self, wait: &Wait, at: usize) {
        let words = [("slot", wait.slot), ("generation", wait.generation), ("wait", wait.sequence)];
        self.fields.extend((0..).zip(words).map(|(word, (name, value))| (name, value.get(), at + 4 * word, 4)));
    }

    /// A record of a SUBMIT has a level; a search has its own.
    fn task(&mut self, task: &Task, at: usize) {
        if at == RECORD {
            self.fields.push(("tprio", task.level.into(), at + 8, 0));
        }
        self.fields.extend([
            ("tid", task.tid, at, 4),
            ("trsrc", task.resources.into(), at + 9, 1),
            ("argument_length", task.argument_length.into(), at + 10, 1),
            ("attempt", task.attempt.into(), at + 11, 1),
        ]);
        let place = |word: usize| at + if word == 0 { 4 } else { 8 + 4 * word };
        self.fields.extend((0..).zip(task.words).map(|(word, value)| ("tdesc", value, place(word), 4)));
    }

    /// The name of the first field that differs in a frame.
    pub(super) fn differs(&self, came_from: u16, frame: &[u8]) -> Option<String> {
        let read = |at: usize, bytes: usize| match bytes {
            // A level, which an argument of unlawful length invalidates.
            0 => level(&frame[(ROUND + at - 8).min(frame.len())..]).into(),
            1 => byte(frame, ROUND + at).into(),
            _ => word32(frame, ROUND + at),
        };
        let mut pairs = vec![("op", u32::from(byte(frame, MF + 3)), u32::from(self.operation))];
        // A repair has no answer.
        if ![REPAIR_ADD, REPAIR_RETRIEVE].contains(&self.operation) {
            pairs.push(("came_from", word16(frame, ROUND).into(), came_from.into()));
        }
        if let Some((ip, port)) = self.sender {
            pairs.push(("address", word32(frame, IP + 12), ip));
            pairs.push(("port", word16(frame, UDP).into(), port.into()));
        }
        pairs.extend(self.sequence.map(|sequence| ("sequence", word32(frame, MF + 12), sequence)));
        pairs.extend(self.fields.iter().map(|&(name, value, at, bytes)| (name, read(at, bytes), value)));
        let differs = pairs.into_iter().find(|(_, switch, model)| switch != model);
        differs.map(|(name, switch, model)| format!("{name}: {switch:#x} in the switch, {model:#x} in the model"))
    }
}
