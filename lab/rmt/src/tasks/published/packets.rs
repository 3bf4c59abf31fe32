//! The packets of clients and executors, and the answers.

use super::{Fields, Kind, Published};
use crate::{Packet, Sent, To};

/// TASK_INFO.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// TID.
    pub tid: u32,
    /// TPRIO, 1 (the highest) to the number of levels.
    pub level: u8,
    /// TRSRC.
    pub resources: u8,
    /// TDESC: as many words as the program has.
    pub words: Vec<u32>,
}

/// A packet that leaves the switch, or ends in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// An executor gets a task.
    Assign {
        /// The executor's address.
        executor: u32,
        /// The address of the task's client.
        client: u32,
        /// UID and JID.
        job: (u32, u32),
        /// The task.
        task: Task,
    },
    /// An executor gets no task.
    NoOp {
        /// The executor's address.
        executor: u32,
    },
    /// A client's tasks were refused: these TIDs.
    Full {
        /// The client's address.
        client: u32,
        /// The TIDs, in the order of submission.
        tids: Vec<u32>,
    },
    /// A packet ended in the switch, for this reason.
    Dropped(&'static str),
}

impl Published {
    /// A SUBMIT of a job's tasks, from a client.
    #[must_use]
    pub fn submit(&self, client: u32, (uid, jid): (u32, u32), tasks: &[Task]) -> Packet {
        let f = self.fields();
        let records: Vec<Vec<u32>> = tasks.iter().map(|task| self.record(task)).collect();
        let records: Vec<&[u32]> = records.iter().map(Vec::as_slice).collect();
        let packet = self.machine.packet_with_records(&records).with(f.op, Kind::Submit as u32);
        let number = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        packet.with(f.address, client).with(f.uid, uid).with(f.jid, jid).with(f.tasks, number)
    }

    fn record(&self, task: &Task) -> Vec<u32> {
        assert_eq!(task.words.len(), self.fields().tdesc.len(), "TDESC has as many words as the program");
        [&[task.tid, task.level.into(), task.resources.into()], &task.words[..]].concat()
    }

    /// A RETRIEVE of an executor with these resources.
    #[must_use]
    pub fn retrieve(&self, executor: u32, resources: u8) -> Packet {
        let f = self.fields();
        let packet = self.machine.packet().with(f.op, Kind::Retrieve as u32).with(f.address, executor);
        packet.with(f.exec_rsrc, resources.into()).with(f.rtrv_prio, 1)
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
                Kind::Full => Some(Answer::Full { client: packet.get(f.address), tids: self.refused(packet) }),
                _ => None,
            },
        }
    }

    /// The tasks that a FULL returns: the first record and later ones.
    fn refused(&self, packet: &Packet) -> Vec<u32> {
        let record = 3 + self.fields().tdesc.len();
        let behind = packet.tail().chunks(record).rev().map(|record| record[0]);
        std::iter::once(packet.get(self.fields().tid)).chain(behind).collect()
    }
}

impl Fields {
    fn assign(&self, packet: &Packet) -> Answer {
        let task = Task {
            tid: packet.get(self.tid),
            level: packet.get(self.rtrv_prio) as u8,
            resources: packet.get(self.trsrc) as u8,
            words: self.tdesc.iter().map(|&word| packet.get(word)).collect(),
        };
        let (executor, client) = (packet.get(self.address), packet.get(self.client_ip));
        Answer::Assign { executor, client, job: (packet.get(self.uid), packet.get(self.jid)), task }
    }
}
