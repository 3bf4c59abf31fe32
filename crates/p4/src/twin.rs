//! The model beside the switch: `midflight_rmt`'s safe program with its front. It says what must come out of a pass.

use crate::P4Error;
use crate::bmv2::Entered;
use crate::frame::{self, IP, MF, PREFERENCE, RECORD, REST, ROUND, SUBMIT, SWAP, UDP, byte, word16, word32};
use midflight_rmt::tasks::safe::front::{self, Guarded, Size, Slot};
use midflight_rmt::tasks::safe::{Answer, Config, Kind, Task};
use midflight_rmt::{Machine, Packet, Sent, Target, To, Word};
use midflight_wire::{Assign, Assignment, NoOp, Operation, Reset, SubmitAck, TaskInfo, Wait, counting, packet};
use std::rc::Rc;

/// The reason FULL: the wire's only one for tasks that were not taken.
const FULL: u8 = 1;
/// A user that nobody is.
const NOBODY: u32 = u32::MAX;

/// A packet on its way round, and the frame that it began as.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    packet: Packet,
    question: Rc<Vec<u8>>,
    came_from: u16,
}

/// What must come out of a pass.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Nothing,
    /// This frame by this port.
    Frame(u16, Vec<u8>),
    /// A packet that goes round: [`Twin::differs`] compares it.
    Round(Flight),
}

/// What a frame is for the switch, before any state decides.
enum Class {
    Forward,
    Controller,
    Malformed,
    Submit(Packet),
    Retrieve(Packet),
}

pub(crate) struct Twin {
    program: Guarded,
    machine: Machine,
    entered: Entered,
}

/// A register of the switch: its name there, its name and word in the model.
const REGISTERS: [(&str, &str, Word); 24] = [
    ("kind.credit_seen", "credit_seen", Word::Low),
    ("accept_task.accepted", "accepted", Word::Low),
    ("latest.last_counter", "last_counter", Word::Low),
    ("enter.add_ptr", "add_ptr", Word::Low),
    ("count_1_2.queued_1_2_low", "queued_1_2", Word::Low),
    ("count_1_2.queued_1_2_high", "queued_1_2", Word::High),
    ("count_3_4.queued_3_4_low", "queued_3_4", Word::Low),
    ("count_3_4.queued_3_4_high", "queued_3_4", Word::High),
    ("head.retrieve_ptr_low", "retrieve_ptr", Word::Low),
    ("head.retrieve_ptr_high", "retrieve_ptr", Word::High),
    ("first_words.entry_trsrc", "entry_trsrc", Word::Low),
    ("first_words.entry_uid", "entry_uid", Word::Low),
    ("words.entry_jid", "entry_jid", Word::Low),
    ("words.entry_port_high", "entry_port_high", Word::Low),
    ("words.entry_tid", "entry_tid", Word::Low),
    ("words.entry_port_low", "entry_port_low", Word::Low),
    ("credit.credit", "credit", Word::Low),
    ("last_words.entry_function", "entry_function", Word::Low),
    ("last_words.entry_index", "entry_index", Word::Low),
    ("last_words.entry_client_ip", "entry_client_ip", Word::Low),
    ("last_words.entry_attempt", "entry_attempt", Word::Low),
    ("last_words.entry_argument", "entry_argument", Word::Low),
    ("last_words.entry_argument_length", "entry_argument_length", Word::Low),
    ("last_words.entry_argument_2", "entry_argument_2", Word::Low),
];
/// The other words of the argument.
const MORE: [&str; 2] = ["entry_argument_3", "entry_argument_4"];

impl Twin {
    pub(crate) fn build(entered: &Entered) -> Result<Self, P4Error> {
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

    /// A frame that comes by a port from outside.
    pub(crate) fn frame(&mut self, by: u16, frame: &[u8]) -> Expected {
        match self.class(frame) {
            Class::Malformed => Expected::Nothing,
            Class::Forward => forwarded(frame),
            Class::Controller => Expected::Frame(frame::CPU, [&by.to_be_bytes()[..], frame].concat()),
            Class::Submit(packet) | Class::Retrieve(packet) => {
                self.pass(Flight { packet, question: Rc::new(frame.to_vec()), came_from: by })
            }
        }
    }

    /// One more pass of a packet that goes round.
    pub(crate) fn again(&mut self, flight: Flight) -> Expected {
        self.pass(flight)
    }

    fn pass(&mut self, flight: Flight) -> Expected {
        let Flight { packet, question, came_from } = flight;
        let sent = self.machine.pass(packet).packet;
        match sent.to {
            To::Recirculated => Expected::Round(Flight { packet: sent.packet, question, came_from }),
            To::Requester => self.answered(&sent, &question, came_from),
            _ => Expected::Nothing,
        }
    }

    /// The frame of an answer. Bytes behind the datagram stay where they were.
    fn answered(&self, sent: &Sent, question: &[u8], came_from: u16) -> Expected {
        let behind = &question[question.len().min(IP + usize::from(word16(question, IP + 2)))..];
        let datagram = if self.program.is_reset(sent) { Some(self.reset(question)) } else { self.told(sent, question) };
        let frame = |datagram: Vec<u8>| [frame::answer(question, &datagram), behind.to_vec()].concat();
        datagram.map_or(Expected::Nothing, |datagram| Expected::Frame(came_from, frame(datagram)))
    }

    fn reset(&self, question: &[u8]) -> Vec<u8> {
        let counter = u64::from(word32(question, ROUND)) << 32 | u64::from(word32(question, ROUND + 4));
        let reset = Reset { counter: counter.into(), ..Reset::new(self.entered.epoch, 0) };
        if word32(question, MF + 8) == self.entered.epoch {
            packet(&reset, &[wait(question)])
        } else {
            counting(&reset, 0)
        }
    }

    fn told(&self, sent: &Sent, question: &[u8]) -> Option<Vec<u8>> {
        let epoch = self.entered.epoch;
        match self.program.safe().answer(&self.program.received(sent))? {
            Answer::NoOp { .. } => Some(packet(&NoOp::new(epoch, 0), &[wait(question)])),
            Answer::Ack { sequence, taken, refused, why, .. } => {
                let client = u64::from(word32(question, ROUND)) << 32 | u64::from(word32(question, ROUND + 4));
                let ack = SubmitAck {
                    client: client.into(),
                    taken: taken.into(),
                    not_taken: refused.into(),
                    reason: if why == 0 { 0 } else { FULL },
                    ..SubmitAck::new(epoch, sequence)
                };
                Some(counting(&ack, byte(question, MF + 4)))
            }
            Answer::Assign { client: (ip, port), job: (token, submission), index, task, .. } => {
                let Wait { slot, generation, sequence } = wait(question);
                let mut argument = [0; 16];
                let words = task.words[1..].iter().flat_map(|word| word.to_be_bytes());
                argument.iter_mut().zip(words).for_each(|(to, byte)| *to = byte);
                let assignment = Assignment {
                    token: u64::from(token).into(),
                    slot,
                    generation,
                    sequence,
                    waited_us: 0.into(),
                    task: TaskInfo {
                        tid: task.tid.into(),
                        function: task.words[0].into(),
                        priority: task.level,
                        resources: task.resources,
                        argument_length: task.argument_length,
                        attempt: task.attempt.saturating_add(1),
                        argument,
                    },
                    uid: NOBODY.into(),
                    jid: submission.into(),
                    address: std::net::SocketAddr::from((std::net::Ipv4Addr::from(ip), port)).into(),
                    submission: submission.into(),
                    index,
                    reserved: [0; 3],
                };
                Some(packet(&Assign::new(epoch, 0), &[assignment]))
            }
            Answer::Dropped(_) => None,
        }
    }

    /// Where a frame that went round and the model's packet differ: the name of the first field.
    pub(crate) fn differs(&self, flight: &Flight, frame: &[u8]) -> Option<String> {
        let (f, front, packet) = (self.program.safe().fields(), self.program.fields(), &flight.packet);
        let op = match Kind::from_number(packet.get(f.op)) {
            Some(Kind::Rest) => REST,
            Some(Kind::Swap) => SWAP,
            _ => Operation::Retrieve as u8,
        };
        let b = |at: usize| u32::from(byte(frame, ROUND + at));
        let w = |at: usize| word32(frame, ROUND + at);
        let mut pairs = vec![
            ("op", u32::from(byte(frame, MF + 3)), u32::from(op)),
            ("came_from", u32::from(word16(frame, ROUND)), u32::from(flight.came_from)),
            ("address", word32(frame, IP + 12), packet.get(f.address)),
            ("port_high", byte(frame, UDP).into(), packet.get(f.port[0])),
            ("port_low", byte(frame, UDP + 1).into(), packet.get(f.port[1])),
        ];
        if op == REST {
            let why = u32::from(packet.get(f.why) != 0);
            pairs.extend([
                ("sequence", word32(frame, MF + 12), packet.get(f.sequence)),
                ("tasks", b(3), packet.get(f.tasks)),
                ("bit", w(4), packet.get(f.bit)),
                ("taken", w(16), packet.get(f.taken)),
                ("refused", w(20), packet.get(f.refused)),
                ("why", b(24), why),
                ("credit_of", b(25), packet.get(f.credit_of)),
                ("index", b(26), packet.get(f.index)),
                ("credit", w(28), packet.get(f.credit)),
                ("uid", w(44), packet.get(f.uid)),
                ("tid", w(56), packet.get(f.tid)),
                ("tprio", level(&frame[(ROUND + 56).min(frame.len())..]), packet.get(f.tprio)),
                ("trsrc", b(65), packet.get(f.trsrc)),
                ("argument_length", b(66), packet.get(f.argument_length)),
                ("attempt", b(67), packet.get(f.attempt)),
            ]);
            pairs.extend(
                (0..).zip(&f.tdesc).map(|(word, &field)| {
                    ("tdesc", if word == 0 { w(60) } else { w(64 + 4 * word) }, packet.get(field))
                }),
            );
        } else {
            pairs.extend([("level", b(2), packet.get(f.level)), ("exec_rsrc", b(16), packet.get(f.exec_rsrc))]);
            let name = if op == SWAP { 36 } else { 24 };
            pairs.extend([
                ("slot", w(name), packet.get(front.slot)),
                ("generation", w(name + 4), packet.get(front.generation)),
                ("wait", w(name + 8), packet.get(front.wait)),
            ]);
        }
        if op == SWAP {
            pairs.extend([
                ("swap_idx", w(24), packet.get(f.swap_idx)),
                ("uid", w(32), packet.get(f.uid)),
                ("jid", w(108), packet.get(f.jid)),
                ("tid", w(52), packet.get(f.tid)),
                ("trsrc", b(61), packet.get(f.trsrc)),
                ("argument_length", b(62), packet.get(f.argument_length)),
                ("attempt", b(63), packet.get(f.attempt)),
                ("client_ip", w(100), packet.get(f.client_ip)),
                ("client_port_high", b(104), packet.get(f.client_port[0])),
                ("client_port_low", b(105), packet.get(f.client_port[1])),
                ("index", b(112), packet.get(f.index)),
            ]);
            pairs.extend(
                (0..).zip(&f.tdesc).map(|(word, &field)| {
                    ("tdesc", if word == 0 { w(56) } else { w(60 + 4 * word) }, packet.get(field))
                }),
            );
        }
        let differs = pairs.into_iter().find(|(_, switch, model)| switch != model);
        differs.map(|(name, switch, model)| format!("{name}: {switch:#x} in the switch, {model:#x} in the model"))
    }

    /// All registers: the name in the switch, and the words in the model.
    pub(crate) fn registers(&self) -> Vec<(String, Vec<u32>)> {
        let more = MORE.map(|name| (format!("last_words.{name}"), name, Word::Low));
        let all = REGISTERS.into_iter().map(|(switch, model, word)| (switch.to_owned(), model, word)).chain(more);
        all.filter_map(|(switch, model, word)| {
            let register = self.program.program().register(model)?;
            let cells = match model {
                "last_counter" => self.entered.slot_cells,
                "queued_1_2" | "queued_3_4" => 1,
                _ if model.starts_with("entry") => 4 * self.entered.size,
                _ => 4,
            };
            Some((switch, (0..cells).map(|cell| self.machine.read(register, cell, word)).collect()))
        })
        .collect()
    }

    fn class(&self, frame: &[u8]) -> Class {
        let is_queue = word16(frame, 12) == 0x0800
            && byte(frame, IP) == 0x45
            && word16(frame, IP + 6) & 0x3FFF == 0
            && byte(frame, IP + 9) == 17
            && word16(frame, UDP + 2) == frame::UDP_PORT
            && word32(frame, IP + 16) == frame::SWITCH.1;
        if !is_queue {
            return Class::Forward;
        }
        let bytes = usize::from(word16(frame, IP + 2));
        if frame.len() < ROUND || frame.len() < IP + bytes || word16(frame, MF) != midflight_wire::MAGIC {
            return Class::Malformed;
        }
        if byte(frame, MF + 2) != midflight_wire::VERSION {
            return Class::Controller;
        }
        if byte(frame, MF + 5) != 0 {
            return Class::Malformed;
        }
        let length = usize::from(word16(frame, UDP + 4));
        let is_whole = bytes == length + 20;
        let count = usize::from(byte(frame, MF + 4));
        match Operation::from_number(byte(frame, MF + 3)) {
            Some(
                Operation::Register | Operation::Keepalive | Operation::Release | Operation::Probe | Operation::Cancel,
            ) => Class::Controller,
            Some(Operation::Submit) => {
                let plain = SUBMIT + RECORD * count;
                let is_one = (1..=32).contains(&count) && is_whole && (length == plain || length == plain + PREFERENCE);
                if is_one { Class::Submit(self.submit(frame, count)) } else { Class::Malformed }
            }
            Some(Operation::Retrieve) if count == 1 && is_whole && length == 60 => {
                Class::Retrieve(self.retrieve(frame))
            }
            _ => Class::Malformed,
        }
    }

    fn submit(&self, frame: &[u8], count: usize) -> Packet {
        let tasks: Vec<Task> = (0..count).map(|at| task(&frame[MF + 56 + RECORD * at..])).collect();
        let sequence = word32(frame, MF + 12);
        let client = (word32(frame, IP + 12), word16(frame, UDP));
        let packet = self.program.safe().submit(client, (word32(frame, MF + 44), sequence), sequence, &tasks);
        self.addressed(packet, frame)
    }

    fn retrieve(&self, frame: &[u8]) -> Packet {
        let Wait { slot, generation, sequence } = wait(frame);
        let (slot, generation) = (slot.get(), generation.get());
        let from = Slot { slot, generation, address: (word32(frame, IP + 12), word16(frame, UDP)) };
        let (epoch, counter) = (word32(frame, MF + 8), word32(frame, ROUND + 4));
        let packet = self.program.retrieve(epoch, &from, byte(frame, ROUND + 8), counter, sequence.get());
        self.addressed(packet, frame)
    }

    /// With the address of the switch, which the answer has in the place of its sender.
    fn addressed(&self, packet: Packet, frame: &[u8]) -> Packet {
        packet.with(self.program.fields().own_ip, word32(frame, IP + 16))
    }
}

/// The wait of a RETRIEVE.
fn wait(frame: &[u8]) -> Wait {
    let word = |at: usize| word32(frame, ROUND + 16 + at).into();
    Wait { slot: word(0), generation: word(4), sequence: word(8) }
}

/// The level that a record asks for; 0, which does not exist, where its argument has no lawful length: such a task is refused.
fn level(record: &[u8]) -> u32 {
    if (17..255).contains(&byte(record, 10)) { 0 } else { byte(record, 8).into() }
}

fn task(record: &[u8]) -> Task {
    Task {
        tid: word32(record, 0),
        level: level(record) as u8,
        resources: byte(record, 9),
        attempt: byte(record, 11),
        argument_length: byte(record, 10),
        words: std::array::from_fn(|word| word32(record, if word == 0 { 4 } else { 8 + 4 * word })),
    }
}

/// What the tables of `Bmv2::enter` make of a frame that is not the queue's.
fn forwarded(frame: &[u8]) -> Expected {
    if word16(frame, 12) != 0x0800
        || word32(frame, IP + 16) >> 16 != frame::NEIGHBOUR.1 >> 16
        || byte(frame, IP + 8) < 2
    {
        return Expected::Nothing;
    }
    let mut sent = frame.to_vec();
    sent[..6].copy_from_slice(&frame::NEIGHBOUR.0);
    sent[6..12].copy_from_slice(&frame::SWITCH.0);
    sent[IP + 8] -= 1;
    frame::seal(&mut sent);
    Expected::Frame(frame::NEIGHBOURS, sent)
}
