//! The packets of clients and executors, and the answers.

use super::{Fields, Kind, Safe};
use crate::{Field, Packet, Sent, To};

const WORDS: usize = 5;
const RECORD: usize = 5 + WORDS;

/// A record of a SUBMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// TID.
    pub tid: u32,
    /// TPRIO, 1 (the highest) to the number of levels.
    pub level: u8,
    /// TRSRC.
    pub resources: u8,
    /// How often the client has submitted it before.
    pub attempt: u8,
    /// Bytes of the argument.
    pub argument_length: u8,
    /// TDESC: function and argument. Words of argument that the program does not have are 0.
    pub words: [u32; WORDS],
}

/// A packet that leaves the switch, or ends in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// An executor gets a task.
    Assign {
        /// The executor's address.
        executor: u32,
        /// The task's client: address and port.
        client: (u32, u16),
        /// UID and JID.
        job: (u32, u32),
        /// Its record's number in its SUBMIT, from 0.
        index: u8,
        /// The task; its level is the one in whose queue it was.
        task: Task,
    },
    /// An executor gets no task.
    NoOp {
        /// The executor's address.
        executor: u32,
    },
    /// The client's tasks taken and refused.
    Ack {
        /// The client's address.
        client: u32,
        /// The SUBMIT's sequence.
        sequence: u32,
        /// The accepted tasks; the lowest bit is the first task.
        taken: u32,
        /// The refused tasks.
        refused: u32,
        /// The [`Why`](super::Why) of the last refused task; 0: all were taken.
        why: u32,
    },
    /// A packet ended in the switch, for this reason.
    Dropped(&'static str),
}

fn set_port(packet: &mut Packet, fields: [Field; 2], port: u16) {
    fields.into_iter().zip(port.to_be_bytes()).for_each(|(field, byte)| packet.set(field, byte.into()));
}

impl Safe {
    /// A SUBMIT of a job's tasks, from a client's address and port.
    #[must_use]
    pub fn submit(&self, client: (u32, u16), (uid, jid): (u32, u32), sequence: u32, tasks: &[Task]) -> Packet {
        let f = self.fields();
        let records: Vec<[u32; RECORD]> = tasks.iter().map(Task::record).collect();
        let words = RECORD - WORDS + f.tdesc.len();
        assert!(records.iter().all(|record| record[words..].iter().all(|&word| word == 0)), "a word too many");
        let records: Vec<&[u32]> = records.iter().map(|record| &record[..words]).collect();
        let packet = self.machine.packet_with_records(&records).with(f.op, Kind::Submit as u32);
        let number = u32::try_from(tasks.len()).unwrap_or(u32::MAX).min(u8::MAX.into());
        let packet = packet.with(f.address, client.0).with(f.sequence, sequence);
        let mut packet = packet.with(f.uid, uid).with(f.jid, jid).with(f.tasks, number);
        set_port(&mut packet, f.port, client.1);
        packet
    }

    /// A RETRIEVE of an executor with these resources, for a task of level `min_level` (1 is the highest) or a lower one.
    #[must_use]
    pub fn retrieve(&self, executor: u32, resources: u8, min_level: u8) -> Packet {
        let f = self.fields();
        let packet = self.machine.packet().with(f.op, Kind::Retrieve as u32).with(f.address, executor);
        packet.with(f.exec_rsrc, resources.into()).with(f.level, min_level.into())
    }

    /// The answer that left a pass, or `None` if the packet recirculates.
    #[must_use]
    pub fn answer(&self, sent: &Sent) -> Option<Answer> {
        let (f, packet) = (self.fields(), &sent.packet);
        match sent.to {
            To::Recirculated | To::Copied | To::Port(_) => None,
            To::Dropped(reason) => Some(Answer::Dropped(reason)),
            To::Requester => match Kind::from_number(packet.get(f.op))? {
                Kind::Assign => Some(f.assign(packet)),
                Kind::NoOp => Some(Answer::NoOp { executor: packet.get(f.address) }),
                Kind::SubmitAck => Some(f.ack(packet)),
                _ => None,
            },
        }
    }
}

impl Task {
    /// In the order of the fields of a record.
    fn record(&self) -> [u32; RECORD] {
        let Self { tid, level, resources, attempt, argument_length, words: [a, b, c, d, e] } = *self;
        let [level, resources, attempt, length] = [level, resources, attempt, argument_length].map(u32::from);
        [tid, level, resources, attempt, length, a, b, c, d, e]
    }
}

impl Fields {
    fn assign(&self, packet: &Packet) -> Answer {
        let byte = |field| packet.get(field) as u8;
        let [high, low] = self.client_port.map(byte);
        let task = Task {
            tid: packet.get(self.tid),
            level: byte(self.level),
            resources: byte(self.trsrc),
            attempt: byte(self.attempt),
            argument_length: byte(self.argument_length),
            words: std::array::from_fn(|word| self.tdesc.get(word).map_or(0, |&word| packet.get(word))),
        };
        Answer::Assign {
            executor: packet.get(self.address),
            client: (packet.get(self.client_ip), u16::from_be_bytes([high, low])),
            job: (packet.get(self.uid), packet.get(self.jid)),
            index: byte(self.index),
            task,
        }
    }

    fn ack(&self, packet: &Packet) -> Answer {
        Answer::Ack {
            client: packet.get(self.address),
            sequence: packet.get(self.sequence),
            taken: packet.get(self.taken),
            refused: packet.get(self.refused),
            why: packet.get(self.why),
        }
    }
}
