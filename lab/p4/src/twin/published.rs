//! The published program. The model's has no front, so the checks of RETRIEVEs are here.
//!
//! The P4 differs from the model:
//!
//! - When the last task of a SUBMIT is stored, the packet itself leaves as SUBMIT_ACK; the model's ends behind egress.
//! - A full queue is answered by SUBMIT_ACK; the model's FULL carries the tasks back.
//! - A search's task that finds no place keeps the form of the search (BACK), because its executor's packet has all its fields; in the model
//!   it becomes a SUBMIT with an unknown port.
//! - Index, attempt, length of the argument, and the port take registers of 8 bits each; in the model a word, and 16 bits.
//! - Epoch, slot and counter are in tables and a register before stage 3.

use super::carried::{BACK, Carried, REPAIR_ADD, REPAIR_RETRIEVE, Rest, SWAP, Search};
use super::{Assigned, Flight, PassOutcome, Task, tasks, wait};
use crate::P4Error;
use crate::around::ROUND;
use crate::bmv2::Entered;
use crate::frame::{IP, MF, UDP, byte, word16, word32};
use midflight_rmt::tasks::published::{Answer, Config, Empty, Kind, Published, Task as Stored};
use midflight_rmt::{Machine, Packet, Sent, Target, To, Word};
use midflight_wire::tasks::Operation;

/// Words of TDESC: the function, 16 bytes of argument; index, attempt and length share the last.
const WORDS: u32 = 6;
const LAST: usize = 5;
/// The field `ptr` of a REPAIR of `add_ptr`.
const ADD: u32 = 1;

/// A register of the switch: its name there, its name in the model, the lowest bit and the mask of its part of the model's cell.
const REGISTERS: [(&str, &str, u32, u32); 18] = [
    ("Pipe.queue.pointers.add_ptr", "add_ptr", 0, u32::MAX),
    ("Pipe.queue.pointers.retrieve_ptr", "retrieve_ptr", 0, u32::MAX),
    ("Pipe.queue.guard.is_valid", "is_valid", 0, u32::MAX),
    ("Pipe.queue.guard.is_repairing", "is_repairing", 0, u32::MAX),
    ("Leave.behind.entries.tid", "tid", 0, u32::MAX),
    ("Leave.behind.entries.uid", "uid", 0, u32::MAX),
    ("Leave.behind.entries.jid", "jid", 0, u32::MAX),
    ("Leave.behind.entries.function", "tdesc0", 0, u32::MAX),
    ("Leave.behind.entries.argument", "tdesc1", 0, u32::MAX),
    ("Leave.behind.entries.argument_2", "tdesc2", 0, u32::MAX),
    ("Leave.behind.entries.argument_3", "tdesc3", 0, u32::MAX),
    ("Leave.behind.entries.argument_4", "tdesc4", 0, u32::MAX),
    ("Leave.behind.entries.index", "tdesc5", 16, 0xFF),
    ("Leave.behind.entries.attempt", "tdesc5", 8, 0xFF),
    ("Leave.behind.entries.argument_length", "tdesc5", 0, 0xFF),
    ("Leave.behind.entries.client_ip", "client_ip", 0, u32::MAX),
    ("Leave.behind.entries.client_port_high", "client_port", 8, 0xFF),
    ("Leave.behind.entries.client_port_low", "client_port", 0, 0xFF),
];

pub(super) struct Queue {
    program: Published,
    machine: Machine,
    entered: Entered,
    /// The counter of each slot's last RETRIEVE.
    counters: Vec<u32>,
}

/// A bitmap of the first `count` tasks.
fn first(count: u32) -> u32 {
    u32::MAX.checked_shr(32 - count.min(32)).unwrap_or(0)
}

fn submitted(question: &[u8]) -> Option<u32> {
    (byte(question, MF + 3) == Operation::Submit as u8).then(|| byte(question, MF + 4).into())
}

/// A task as the model stores it.
fn stored((index, task): (u8, Task)) -> Stored {
    let last = u32::from_be_bytes([0, index, task.attempt, task.argument_length]);
    Stored {
        tid: task.tid,
        level: task.level,
        resources: task.resources,
        words: task.words.into_iter().chain([last]).collect(),
    }
}

/// The index and the task that a client submitted.
fn unpacked(stored: &Stored) -> (u8, Task) {
    let word = |number: usize| stored.words.get(number).copied().unwrap_or(0);
    let [_, index, attempt, argument_length] = word(LAST).to_be_bytes();
    let &Stored { tid, level, resources, .. } = stored;
    (index, Task { tid, level, resources, attempt, argument_length, words: std::array::from_fn(word) })
}

impl Queue {
    pub(super) fn build(entered: &Entered) -> Result<Self, P4Error> {
        let config = Config { levels: 4, size: entered.size, words: WORDS, empty: Empty::NoOp };
        let program = Published::build(config, &Target::TOFINO_1)?;
        let mut machine = program.machine();
        for register in ["add_ptr", "retrieve_ptr"].iter().filter_map(|name| program.program().register(name)) {
            (0..4).for_each(|level| machine.write(register, level, Word::Low, entered.start));
        }
        let counters = vec![entered.start; entered.slot_cells as usize];
        Ok(Self { program, machine, entered: entered.clone(), counters })
    }

    /// The model's answer on the wire. FULL returns the refused tasks, the last ones; if all were taken, the packet ends silently. So does
    /// a search's task that finds no new place.
    fn told(&self, sent: Sent, question: &[u8]) -> PassOutcome {
        if matches!(sent.to, To::Recirculated | To::Copied) {
            return PassOutcome::Round(sent.packet);
        }
        match (self.program.answer(&sent), submitted(question)) {
            (Some(Answer::NoOp { .. }), _) => PassOutcome::NoOp,
            (Some(Answer::Dropped("submitted")), Some(count)) => {
                PassOutcome::Submitted { taken: first(count), refused: 0, unparsed: 0 }
            }
            (Some(Answer::Full { tids, .. }), Some(count)) => {
                let taken = first(count.saturating_sub(tids.len() as u32));
                PassOutcome::Submitted { taken, refused: first(count) & !taken, unparsed: tids.len().saturating_sub(1) }
            }
            (Some(Answer::Assign { client: ip, job: (token, submission), task, .. }), _) => {
                let (index, task) = unpacked(&task);
                let port = sent.packet.get(self.program.fields().client_port) as u16;
                PassOutcome::Assigned(Assigned { client: (ip, port), token, submission, index, task })
            }
            _ => PassOutcome::Nothing,
        }
    }

    fn stored(&self, packet: &Packet) -> Stored {
        let (f, get) = (self.program.fields(), |field| packet.get(field));
        let words = f.tdesc.iter().map(|&word| get(word)).collect();
        Stored { tid: get(f.tid), level: get(f.tprio) as u8, resources: get(f.trsrc) as u8, words }
    }

    fn rest(&self, packet: &Packet, count: u32) -> Carried {
        let (f, get) = (self.program.fields(), |field| packet.get(field));
        let (left, (_, task)) = (get(f.tasks), unpacked(&self.stored(packet)));
        let done = count.saturating_sub(left);
        let rest = Rest {
            sequence: get(f.jid),
            left,
            bit: 1 << done.min(31),
            taken: first(done),
            refused: first(count),
            why: 0,
            credit: (0, 0),
            index: done.wrapping_sub(1) & 0xFF,
            token: get(f.uid),
            task,
        };
        Carried::rest(&rest).from((get(f.address), get(f.port) as u16))
    }

    fn search(&self, operation: u8, flight: &Flight) -> Carried {
        let (f, get) = (self.program.fields(), |field| flight.packet.get(field));
        let (index, task) = unpacked(&self.stored(&flight.packet));
        Carried::search(
            operation,
            &Search {
                level: get(f.rtrv_prio),
                resources: get(f.exec_rsrc),
                seen: Some(get(f.pkt_retrieve_ptr)),
                at: get(f.swap_idx),
                wait: wait(&flight.question),
                token: get(f.uid),
                submission: get(f.jid),
                index: index.into(),
                client: (get(f.client_ip), get(f.client_port) as u16),
                task,
            },
        )
    }
}

impl super::Queue for Queue {
    fn submit(&self, frame: &[u8], count: usize) -> Packet {
        let tasks: Vec<Stored> = (0..).zip(tasks(frame, count)).map(stored).collect();
        let job = (word32(frame, MF + 44), word32(frame, MF + 12));
        let packet = self.program.submit(word32(frame, IP + 12), job, &tasks);
        packet.with(self.program.fields().port, word16(frame, UDP).into())
    }

    fn retrieve(&mut self, frame: &[u8]) -> Result<Packet, PassOutcome> {
        let asked = wait(frame);
        let from = (asked.slot.get(), asked.generation.get(), word32(frame, IP + 12), word16(frame, UDP));
        if word32(frame, MF + 8) != self.entered.epoch || !self.entered.slots.contains(&from) {
            return Err(PassOutcome::Reset);
        }
        let counter = word32(frame, ROUND + 4);
        let last = self.counters.get_mut(from.0 as usize).filter(|last| last.wrapping_sub(counter).cast_signed() < 0);
        *last.ok_or(PassOutcome::Nothing)? = counter;
        let packet = self.program.retrieve(from.2, byte(frame, ROUND + 8));
        Ok(packet.with(self.program.fields().port, from.3.into()))
    }

    fn pass(&mut self, packet: Packet, question: &[u8]) -> Vec<PassOutcome> {
        let sent: Vec<Sent> = self.machine.pass(packet).into_iter().collect();
        sent.into_iter().map(|sent| self.told(sent, question)).collect()
    }

    fn carried(&self, flight: &Flight) -> Carried {
        let (f, packet) = (self.program.fields(), &flight.packet);
        match (Kind::from_number(packet.get(f.op)), submitted(&flight.question)) {
            (Some(Kind::Submit), Some(count)) => self.rest(packet, count),
            (Some(Kind::Submit), None) => self.search(BACK, flight),
            (Some(Kind::Swap), _) => self.search(SWAP, flight),
            (Some(Kind::Repair), _) => {
                let operation = if packet.get(f.ptr) == ADD { REPAIR_ADD } else { REPAIR_RETRIEVE };
                // In the switch, the executor is the sender of a search's REPAIR; in the model, its client.
                Carried::repair(operation, packet.get(f.rtrv_prio), packet.get(f.value))
            }
            (Some(Kind::OweNoOp), _) => {
                let asker = (packet.get(f.address), packet.get(f.port) as u16);
                Carried::owed_no_op(&wait(&flight.question)).from(asker)
            }
            _ => Carried::retrieve(packet.get(f.rtrv_prio), packet.get(f.exec_rsrc), &wait(&flight.question)),
        }
    }

    fn registers(&self) -> Vec<(&'static str, Vec<u32>)> {
        let all = REGISTERS.into_iter().filter_map(|(switch, model, bit, mask)| {
            let register = self.program.program().register(model)?;
            let cells = match model {
                "add_ptr" | "retrieve_ptr" => 4,
                "is_repairing" => 1,
                _ => 4 * self.entered.size,
            };
            let read = |cell| self.machine.read(register, cell, Word::Low) >> bit & mask;
            Some((switch, (0..cells).map(read).collect()))
        });
        all.chain([("Pipe.queue.latest.last_counter", self.counters.clone())]).collect()
    }
}
