//! The model: expected results of a pass, and expected registers. `safe` and `published` have the two programs of `midflight_rmt`; here are
//! their common parts.

mod carried;
mod published;
mod safe;

use crate::around::{self, PREFERENCE, RECORD, ROUND, SUBMIT};
use crate::bmv2::Entered;
use crate::frame::{self, IP, MF, UDP, byte, word16, word32};
use crate::{P4Error, Program};
use carried::Carried;
use midflight_rmt::Packet;
use midflight_rmt::tasks::safe::Task;
use midflight_wire::tasks::{Assign, Assignment, NoOp, Operation, Reset, SubmitAck, TaskInfo, Wait};
use midflight_wire::{counting, packet};
use std::rc::Rc;

/// The reason FULL: the wire's only one for refused tasks.
const FULL: u8 = 1;
/// A user id that no user has.
const NOBODY: u32 = u32::MAX;

/// A recirculating packet, and its original frame.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    packet: Packet,
    question: Rc<Vec<u8>>,
    came_from: u16,
}

/// Expected result of a pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    /// Port and bytes of the frame that leaves, if one does.
    pub(crate) frame: Option<(u16, Vec<u8>)>,
    /// Recirculated packets: [`Twin::differs`] compares them.
    pub(crate) round: Vec<Flight>,
}

/// The meaning of a packet that leaves a pass of the model.
enum PassOutcome {
    /// It recirculates.
    Round(Packet),
    /// The slot is void.
    Reset,
    /// A slot gets no task.
    NoOp,
    /// A slot gets this task.
    Assigned(Assigned),
    /// Outcome of a SUBMIT's tasks: two bitmaps. Records that no pass has parsed stay after the answer.
    Submitted { taken: u32, refused: u32, unparsed: usize },
    /// It ends.
    Nothing,
}

struct Assigned {
    client: (u32, u16),
    token: u32,
    submission: u32,
    index: u8,
    task: Task,
}

/// A program of the model, with frames.
trait Queue {
    /// The packet of a well-formed SUBMIT.
    fn submit(&self, frame: &[u8], count: usize) -> Packet;
    /// The packet of a well-formed RETRIEVE, or the result of the front's checks.
    fn retrieve(&mut self, frame: &[u8]) -> Result<Packet, PassOutcome>;
    /// One pass of a packet that began as a frame.
    fn pass(&mut self, packet: Packet, question: &[u8]) -> Vec<PassOutcome>;
    /// Contents of a recirculated packet.
    fn carried(&self, flight: &Flight) -> Carried;
    fn registers(&self) -> Vec<(&'static str, Vec<u32>)>;
}

pub(crate) struct Twin {
    queue: Box<dyn Queue>,
    epoch: u32,
}

impl Twin {
    pub(crate) fn build(program: Program, entered: &Entered) -> Result<Self, P4Error> {
        let queue: Box<dyn Queue> = match program {
            Program::Safe => Box::new(safe::Queue::build(entered)?),
            Program::Published => Box::new(published::Queue::build(entered)?),
        };
        Ok(Self { queue, epoch: entered.epoch })
    }

    /// A frame that comes by a port from outside.
    pub(crate) fn frame(&mut self, by: u16, frame: &[u8]) -> Expected {
        if !is_intact(frame) {
            return Expected::default();
        }
        let begun = match class(frame) {
            Class::Malformed => return Expected::default(),
            Class::Forward => return Expected { frame: forwarded(frame), round: Vec::new() },
            Class::Controller => {
                let sent = [&by.to_be_bytes()[..], frame].concat();
                return Expected { frame: Some((frame::CPU, sent)), round: Vec::new() };
            }
            Class::Submit(count) => Ok(self.queue.submit(frame, count)),
            Class::Retrieve => self.queue.retrieve(frame),
        };
        let question = Rc::new(frame.to_vec());
        match begun {
            Ok(packet) => self.again(Flight { packet, question, came_from: by }),
            Err(told) => self.expected(vec![told], &question, by),
        }
    }

    /// One more pass of a recirculating packet.
    pub(crate) fn again(&mut self, flight: Flight) -> Expected {
        let Flight { packet, question, came_from } = flight;
        let told = self.queue.pass(packet, &question);
        self.expected(told, &question, came_from)
    }

    fn expected(&self, told: Vec<PassOutcome>, question: &Rc<Vec<u8>>, came_from: u16) -> Expected {
        let mut expected = Expected::default();
        for told in told {
            match told {
                PassOutcome::Round(packet) => {
                    expected.round.push(Flight { packet, question: Rc::clone(question), came_from });
                }
                told => {
                    let answer = self.answer(told, question);
                    expected.frame = answer.map(|frame| (came_from, frame)).or(expected.frame);
                }
            }
        }
        expected
    }

    /// The frame of an answer. Bytes that the parser has left, and bytes after the datagram, stay where they were.
    fn answer(&self, told: PassOutcome, question: &[u8]) -> Option<Vec<u8>> {
        let unparsed = match told {
            PassOutcome::Submitted { unparsed: records @ 1.., .. } => {
                let has_preference = !(usize::from(word16(question, UDP + 4)) - SUBMIT).is_multiple_of(RECORD);
                records * RECORD + if has_preference { PREFERENCE } else { 0 }
            }
            _ => 0,
        };
        let end = IP + usize::from(word16(question, IP + 2)) - unparsed;
        let behind = &question[question.len().min(end)..];
        let datagram = self.datagram(told, question)?;
        Some([frame::answer(question, &datagram), behind.to_vec()].concat())
    }

    fn datagram(&self, told: PassOutcome, question: &[u8]) -> Option<Vec<u8>> {
        let (epoch, asked) = (self.epoch, wait(question));
        // The counter of a RETRIEVE, the client of a SUBMIT.
        let number = u64::from(word32(question, ROUND)) << 32 | u64::from(word32(question, ROUND + 4));
        Some(match told {
            PassOutcome::Round(_) | PassOutcome::Nothing => return None,
            PassOutcome::NoOp => packet(&NoOp::new(epoch, 0), &[asked]),
            PassOutcome::Reset => {
                let reset = Reset { counter: number.into(), ..Reset::new(epoch, 0) };
                if word32(question, MF + 8) == epoch { packet(&reset, &[asked]) } else { counting(&reset, 0) }
            }
            PassOutcome::Submitted { taken, refused, .. } => {
                let ack = SubmitAck {
                    client: number.into(),
                    taken: taken.into(),
                    not_taken: refused.into(),
                    reason: if refused == 0 { 0 } else { FULL },
                    ..SubmitAck::new(epoch, word32(question, MF + 12))
                };
                counting(&ack, byte(question, MF + 4))
            }
            PassOutcome::Assigned(assigned) => packet(&Assign::new(epoch, 0), &[assignment(&assigned, &asked)]),
        })
    }

    pub(crate) fn named(&self, flight: &Flight) -> &'static str {
        self.queue.carried(flight).named()
    }

    pub(crate) fn operation(&self, flight: &Flight) -> u8 {
        self.queue.carried(flight).operation
    }

    /// The name of the first field in which a recirculated frame and the model's packet differ.
    pub(crate) fn differs(&self, flight: &Flight, frame: &[u8]) -> Option<String> {
        self.queue.carried(flight).differs(flight.came_from, frame)
    }

    /// All registers: the name in the switch, and the values of its cells.
    pub(crate) fn registers(&self) -> Vec<(&'static str, Vec<u32>)> {
        self.queue.registers()
    }
}

fn assignment(assigned: &Assigned, asked: &Wait) -> Assignment {
    let &Assigned { client: (ip, port), token, submission, index, ref task } = assigned;
    let &Wait { slot, generation, sequence } = asked;
    let mut argument = [0; 16];
    let words = task.words[1..].iter().flat_map(|word| word.to_be_bytes());
    argument.iter_mut().zip(words).for_each(|(to, byte)| *to = byte);
    Assignment {
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
    }
}

/// The class of a frame, before any state decides.
enum Class {
    Forward,
    Controller,
    Malformed,
    /// Of this many tasks.
    Submit(usize),
    Retrieve,
}

fn class(frame: &[u8]) -> Class {
    let is_queue = word16(frame, 12) == 0x0800
        && byte(frame, IP) == 0x45
        && word16(frame, IP + 6) & 0x3FFF == 0
        && byte(frame, IP + 9) == 17
        && word16(frame, UDP + 2) == around::UDP_PORT
        && word32(frame, IP + 16) == around::SWITCH.1;
    if !is_queue {
        return Class::Forward;
    }
    let bytes = usize::from(word16(frame, IP + 2));
    if byte(frame, 0) & 1 == 1 || frame[..6] == frame[6..12] {
        return Class::Malformed;
    }
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
            if is_one { Class::Submit(count) } else { Class::Malformed }
        }
        Some(Operation::Retrieve) if count == 1 && is_whole && length == 60 => Class::Retrieve,
        _ => Class::Malformed,
    }
}

/// Whether the checksum of an IP header is right.
fn is_intact(frame: &[u8]) -> bool {
    let mut sealed = frame.to_vec();
    frame::seal(&mut sealed);
    word16(frame, 12) != 0x0800 || byte(frame, IP) != 0x45 || sealed == frame
}

fn wait(frame: &[u8]) -> Wait {
    let word = |at: usize| word32(frame, ROUND + 16 + at).into();
    Wait { slot: word(0), generation: word(4), sequence: word(8) }
}

fn tasks(frame: &[u8], count: usize) -> Vec<Task> {
    (0..count).map(|at| task(&frame[MF + 56 + RECORD * at..])).collect()
}

fn task(record: &[u8]) -> Task {
    Task {
        tid: word32(record, 0),
        level: level(record),
        resources: byte(record, 9),
        attempt: byte(record, 11),
        argument_length: byte(record, 10),
        words: std::array::from_fn(|word| word32(record, if word == 0 { 4 } else { 8 + 4 * word })),
    }
}

/// The level of a record; 0, which does not exist, if its argument has no lawful length: no program takes such a task.
fn level(record: &[u8]) -> u8 {
    if (17..255).contains(&byte(record, 10)) { 0 } else { byte(record, 8) }
}

/// The result of `Bmv2::enter`'s tables for a frame that is not the queue's.
fn forwarded(frame: &[u8]) -> Option<(u16, Vec<u8>)> {
    if word16(frame, 12) != 0x0800
        || word32(frame, IP + 16) >> 16 != around::NEIGHBOUR.1 >> 16
        || byte(frame, IP + 8) < 2
        || byte(frame, IP) != 0x45
    {
        return None;
    }
    let mut sent = frame.to_vec();
    sent[..6].copy_from_slice(&around::NEIGHBOUR.0);
    sent[6..12].copy_from_slice(&around::SWITCH.0);
    sent[IP + 8] -= 1;
    frame::seal(&mut sent);
    Some((around::NEIGHBOURS, sent))
}
