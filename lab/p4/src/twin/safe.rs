//! The safe program, with its front.

use super::carried::{Carried, Rest, SWAP, Search};
use super::{Assigned, Flight, PassOutcome, Task, Wait, tasks, wait};
use crate::P4Error;
use crate::around::ROUND;
use crate::bmv2::Entered;
use crate::frame::{IP, MF, UDP, byte, word16, word32};
use midflight_rmt::tasks::safe::front::{self, Guarded, Size, Slot};
use midflight_rmt::tasks::safe::{Answer, Config, Kind};
use midflight_rmt::{Machine, Packet, Sent, Target, To, Word};

/// A register of the switch: its name there, its name and word in the model.
const REGISTERS: [(&str, &str, Word); 26] = [
    ("Pipe.look.kind.credit_seen", "credit_seen", Word::Low),
    ("Pipe.queue.accept_task.accepted", "accepted", Word::Low),
    ("Pipe.queue.latest.last_counter", "last_counter", Word::Low),
    ("Pipe.queue.enter.add_ptr", "add_ptr", Word::Low),
    ("Pipe.queue.count_1_2.queued_1_2_low", "queued_1_2", Word::Low),
    ("Pipe.queue.count_1_2.queued_1_2_high", "queued_1_2", Word::High),
    ("Pipe.queue.count_3_4.queued_3_4_low", "queued_3_4", Word::Low),
    ("Pipe.queue.count_3_4.queued_3_4_high", "queued_3_4", Word::High),
    ("Pipe.queue.head.retrieve_ptr_low", "retrieve_ptr", Word::Low),
    ("Pipe.queue.head.retrieve_ptr_high", "retrieve_ptr", Word::High),
    ("Pipe.queue.first_words.entry_trsrc", "entry_trsrc", Word::Low),
    ("Pipe.queue.first_words.entry_uid", "entry_uid", Word::Low),
    ("Pipe.queue.words.entry_jid", "entry_jid", Word::Low),
    ("Pipe.queue.words.entry_port_high", "entry_port_high", Word::Low),
    ("Pipe.queue.words.entry_tid", "entry_tid", Word::Low),
    ("Pipe.queue.words.entry_port_low", "entry_port_low", Word::Low),
    ("Pipe.queue.credit.credit", "credit", Word::Low),
    ("Pipe.queue.last_words.entry_function", "entry_function", Word::Low),
    ("Pipe.queue.last_words.entry_index", "entry_index", Word::Low),
    ("Pipe.queue.last_words.entry_client_ip", "entry_client_ip", Word::Low),
    ("Pipe.queue.last_words.entry_attempt", "entry_attempt", Word::Low),
    ("Pipe.queue.last_words.entry_argument", "entry_argument", Word::Low),
    ("Pipe.queue.last_words.entry_argument_length", "entry_argument_length", Word::Low),
    ("Pipe.queue.last_words.entry_argument_2", "entry_argument_2", Word::Low),
    ("Pipe.queue.last_words.entry_argument_3", "entry_argument_3", Word::Low),
    ("Pipe.queue.last_words.entry_argument_4", "entry_argument_4", Word::Low),
];

pub(super) struct Queue {
    program: Guarded,
    machine: Machine,
    entered: Entered,
}

impl Queue {
    pub(super) fn build(entered: &Entered) -> Result<Self, P4Error> {
        let slots = entered.slots.iter();
        let slots = slots.map(|&(slot, generation, ip, port)| Slot { slot, generation, address: (ip, port) }).collect();
        let config = Config { levels: 4, size: entered.size, words: 4 };
        let size = Size { slots: entered.slot_cells, hosts: 4 };
        let front = front::Entered { epoch: entered.epoch, slots };
        let program = Guarded::build(config, size, &front, &Target::TOFINO_1)?;
        let mut machine = program.machine_from(entered.start);
        for register in ["credit", "credit_seen"].iter().filter_map(|name| program.program().register(name)) {
            let full = entered.start.wrapping_add(entered.room);
            (0..4).for_each(|level| machine.write(register, level, Word::Low, full));
        }
        Ok(Self { machine, program, entered: entered.clone() })
    }

    /// With the switch's address, which the answer has as its sender.
    fn addressed(&self, packet: Packet, frame: &[u8]) -> Packet {
        packet.with(self.program.fields().own_ip, word32(frame, IP + 16))
    }

    fn told(&self, sent: Sent) -> PassOutcome {
        match sent.to {
            To::Recirculated => return PassOutcome::Round(sent.packet),
            To::Requester => {}
            _ => return PassOutcome::Nothing,
        }
        if self.program.is_reset(&sent) {
            return PassOutcome::Reset;
        }
        match self.program.safe().answer(&self.program.received(&sent)) {
            Some(Answer::NoOp { .. }) => PassOutcome::NoOp,
            Some(Answer::Ack { taken, refused, .. }) => PassOutcome::Submitted { taken, refused, unparsed: 0 },
            Some(Answer::Assign { client, job: (token, submission), index, task, .. }) => {
                PassOutcome::Assigned(Assigned { client, token, submission, index, task })
            }
            Some(Answer::Dropped(_)) | None => PassOutcome::Nothing,
        }
    }

    fn task(&self, packet: &Packet) -> Task {
        let f = self.program.safe().fields();
        let get = |field| packet.get(field);
        Task {
            tid: get(f.tid),
            level: get(f.tprio) as u8,
            resources: get(f.trsrc) as u8,
            attempt: get(f.attempt) as u8,
            argument_length: get(f.argument_length) as u8,
            words: std::array::from_fn(|word| get(f.tdesc[word])),
        }
    }
}

impl super::Queue for Queue {
    fn submit(&self, frame: &[u8], count: usize) -> Packet {
        let sequence = word32(frame, MF + 12);
        let client = (word32(frame, IP + 12), word16(frame, UDP));
        let job = (word32(frame, MF + 44), sequence);
        self.addressed(self.program.safe().submit(client, job, sequence, &tasks(frame, count)), frame)
    }

    fn retrieve(&mut self, frame: &[u8]) -> Result<Packet, PassOutcome> {
        let Wait { slot, generation, sequence } = wait(frame);
        let (slot, generation) = (slot.get(), generation.get());
        let from = Slot { slot, generation, address: (word32(frame, IP + 12), word16(frame, UDP)) };
        let (epoch, counter) = (word32(frame, MF + 8), word32(frame, ROUND + 4));
        let packet = self.program.retrieve(epoch, &from, byte(frame, ROUND + 8), counter, sequence.get());
        Ok(self.addressed(packet, frame))
    }

    fn pass(&mut self, packet: Packet, _question: &[u8]) -> Vec<PassOutcome> {
        let sent = self.machine.pass(packet).packet;
        vec![self.told(sent)]
    }

    fn carried(&self, flight: &Flight) -> Carried {
        let (f, front, packet) = (self.program.safe().fields(), self.program.fields(), &flight.packet);
        let get = |field| packet.get(field);
        let port = |[high, low]: [midflight_rmt::Field; 2]| u16::from_be_bytes([get(high) as u8, get(low) as u8]);
        let (slot, generation, sequence) = (get(front.slot), get(front.generation), get(front.wait));
        let wait = Wait { slot: slot.into(), generation: generation.into(), sequence: sequence.into() };
        let task = self.task(packet);
        let carried = match Kind::from_number(get(f.op)) {
            Some(Kind::Rest) => Carried::rest(&Rest {
                sequence: get(f.sequence),
                left: get(f.tasks),
                bit: get(f.bit),
                taken: get(f.taken),
                refused: get(f.refused),
                // The wire has one reason for all.
                why: u32::from(get(f.why) != 0),
                credit: (get(f.credit_of), get(f.credit)),
                index: get(f.index),
                token: get(f.uid),
                task,
            }),
            Some(Kind::Swap) => Carried::search(
                SWAP,
                &Search {
                    level: get(f.level),
                    resources: get(f.exec_rsrc),
                    seen: None,
                    at: get(f.swap_idx),
                    wait,
                    token: get(f.uid),
                    submission: get(f.jid),
                    index: get(f.index),
                    client: (get(f.client_ip), port(f.client_port)),
                    task,
                },
            ),
            _ => Carried::retrieve(get(f.level), get(f.exec_rsrc), &wait),
        };
        carried.from((get(f.address), port(f.port)))
    }

    fn registers(&self) -> Vec<(&'static str, Vec<u32>)> {
        let all = REGISTERS.into_iter().filter_map(|(switch, model, word)| {
            let register = self.program.program().register(model)?;
            let cells = match model {
                "last_counter" => self.entered.slot_cells,
                "queued_1_2" | "queued_3_4" => 1,
                _ if model.starts_with("entry") => 4 * self.entered.size,
                _ => 4,
            };
            Some((switch, (0..cells).map(|cell| self.machine.read(register, cell, word)).collect()))
        });
        all.collect()
    }
}
