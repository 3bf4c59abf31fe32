//! A program with its machine: one interface to both programs.

use super::parser::{Asked, Origin};
use super::{AsicConfig, Program};
use midflight_rmt::tasks::published::{self, Empty, Published};
use midflight_rmt::tasks::safe::{self, Safe};
use midflight_rmt::{Machine, Packet, Refusal, Sent, Target, To, Word};
use midflight_wire::tasks::TaskInfo;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Words of TDESC in the published program: the function, 16 bytes of argument; index, attempt and length share the last.
const PUBLISHED_WORDS: u32 = 6;

/// The meaning of a packet that leaves a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PassOutcome {
    /// It recirculates.
    Round(Packet),
    /// A slot gets this task.
    Assigned(Assigned),
    /// A slot gets no task.
    NoOp,
    /// Outcome of a SUBMIT's tasks.
    Submitted { taken: u32, refused: u32 },
    /// Returns an acknowledged task to its client.
    Returned,
    /// It ends: dropped.
    Ended,
    /// The program refuses it as malformed.
    Dropped,
}

/// A task as stored in its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    /// The lower half of its SUBMIT's token.
    pub(super) token: u32,
    pub(super) address: SocketAddrV4,
    pub(super) submission: u32,
    pub(super) index: u8,
    /// As the client submitted it.
    pub(super) info: TaskInfo,
}

#[derive(Clone, Debug)]
pub(super) enum Pipeline {
    Safe { program: Box<Safe>, machine: Machine },
    Published { program: Box<Published>, machine: Machine },
}

impl Pipeline {
    pub(super) fn build(config: &AsicConfig) -> Result<Self, Refusal> {
        let (levels, size, target) = (config.levels, config.queue, &Target::TOFINO_1);
        Ok(match config.program {
            Program::Safe => {
                let program = Box::new(Safe::build(safe::Config { levels, size, words: config.argument / 4 }, target)?);
                Self::Safe { machine: program.machine(), program }
            }
            Program::Published => {
                let config = published::Config { levels, size, words: PUBLISHED_WORDS, empty: Empty::NoOp };
                let program = Box::new(Published::build(config, target)?);
                Self::Published { machine: program.machine(), program }
            }
        })
    }

    pub(super) fn argument_bytes(&self) -> usize {
        match self {
            Self::Safe { program, .. } => 4 * program.config().words as usize,
            Self::Published { .. } => 16,
        }
    }

    pub(super) fn submit(&self, client: SocketAddrV4, token: u32, sequence: u32, tasks: &[TaskInfo]) -> Packet {
        let ip = u32::from(*client.ip());
        match self {
            Self::Safe { program, .. } => {
                let words = program.config().words as usize;
                let tasks: Vec<_> = tasks.iter().map(|task| safe_task(words, task)).collect();
                program.submit((ip, client.port()), (token, sequence), sequence, &tasks)
            }
            Self::Published { program, .. } => {
                let tasks: Vec<_> = (0..).zip(tasks).map(|(index, task)| published_task(index, task)).collect();
                let port = client.port().into();
                program.submit(ip, (token, sequence), &tasks).with(program.fields().port, port)
            }
        }
    }

    pub(super) fn retrieve(&self, executor: SocketAddrV4, resources: u8) -> Packet {
        let ip = u32::from(*executor.ip());
        match self {
            Self::Safe { program, .. } => program.retrieve(ip, resources, 1),
            Self::Published { program, .. } => program.retrieve(ip, resources),
        }
    }

    /// One pass: the meaning of the packet, then of its copies.
    pub(super) fn pass(&mut self, packet: Packet, origin: &Origin) -> Vec<PassOutcome> {
        match self {
            Self::Safe { program, machine } => {
                machine.pass(packet).into_iter().map(|s| safe_told(program, s)).collect()
            }
            Self::Published { program, machine } => {
                machine.pass(packet).into_iter().map(|sent| published_told(program, sent, origin)).collect()
            }
        }
    }

    pub(super) fn queued(&self) -> [u32; 4] {
        let mut queued = [0; 4];
        for (level, queued) in (0..).zip(&mut queued).take(self.levels() as usize) {
            *queued = match self {
                Self::Safe { program, machine } => program.level(machine, level).queued,
                Self::Published { program, machine } => {
                    let read = |name| program.program().register(name).map(|r| machine.read(r, level, Word::Low));
                    let (add, retrieve) = (read("add_ptr").unwrap_or(0), read("retrieve_ptr").unwrap_or(0));
                    // A pointer that was advanced wrongly and is not repaired yet is ahead of the other.
                    add.wrapping_sub(retrieve).cast_signed().max(0).cast_unsigned().min(program.config().size)
                }
            };
        }
        queued
    }

    fn levels(&self) -> u32 {
        match self {
            Self::Safe { program, .. } => program.config().levels,
            Self::Published { program, .. } => program.config().levels,
        }
    }

    /// For the safe program only; the pointers of the published one may have any values.
    pub(super) fn check_at_rest(&self) -> Result<(), String> {
        let Self::Safe { program, machine } = self else { return Ok(()) };
        for level in 0..program.config().levels {
            let at = program.level(machine, level);
            let apart = at.add.wrapping_sub(at.retrieve) & (u32::MAX / program.config().levels.next_power_of_two());
            let inside = at.accepted.wrapping_sub(at.credit.wrapping_sub(program.config().size));
            if apart != at.queued || inside != at.queued {
                return Err(format!("level {}: {at:?}", level + 1));
            }
        }
        Ok(())
    }
}

fn word(bytes: [u8; 16], number: usize) -> u32 {
    bytes.as_chunks::<4>().0.get(number).map_or(0, |&word| u32::from_be_bytes(word))
}

fn bytes_of(words: &[u32]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.as_chunks_mut::<4>().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
    bytes
}

/// `words`: words of its argument that an entry has.
fn safe_task(words: usize, task: &TaskInfo) -> safe::Task {
    safe::Task {
        tid: task.tid.get(),
        level: task.priority,
        resources: task.resources,
        attempt: task.attempt,
        argument_length: task.argument_length,
        words: std::array::from_fn(|number| match number {
            0 => task.function.get(),
            _ if number <= words => word(task.argument, number - 1),
            _ => 0,
        }),
    }
}

fn safe_told(program: &Safe, sent: Sent) -> PassOutcome {
    match program.answer(&sent) {
        None => PassOutcome::Round(sent.packet),
        Some(safe::Answer::NoOp { .. }) => PassOutcome::NoOp,
        Some(safe::Answer::Ack { taken, refused, .. }) => PassOutcome::Submitted { taken, refused },
        Some(safe::Answer::Dropped(_)) => PassOutcome::Dropped,
        Some(safe::Answer::Assign { client: (ip, port), job: (token, submission), index, task, .. }) => {
            let info = TaskInfo {
                tid: task.tid.into(),
                function: task.words[0].into(),
                priority: task.level,
                resources: task.resources,
                argument_length: task.argument_length,
                attempt: task.attempt,
                argument: bytes_of(&task.words[1..]),
            };
            let address = SocketAddrV4::new(Ipv4Addr::from(ip), port);
            PassOutcome::Assigned(Assigned { token, address, submission, index, info })
        }
    }
}

fn published_task(index: u8, task: &TaskInfo) -> published::Task {
    let last = u32::from_be_bytes([0, index, task.attempt, task.argument_length]);
    let argument = (0..4).map(|number| word(task.argument, number));
    let words = std::iter::once(task.function.get()).chain(argument).chain([last]).collect();
    published::Task { tid: task.tid.get(), level: task.priority, resources: task.resources, words }
}

/// FULL returns the refused tasks, the last ones; if all were taken, the packet ends silently. The deparser makes a SUBMIT_ACK of both.
fn published_told(program: &Published, sent: Sent, origin: &Origin) -> PassOutcome {
    if matches!(sent.to, To::Recirculated | To::Copied) {
        return PassOutcome::Round(sent.packet);
    }
    let count = match origin.asked {
        Asked::Submit { count, .. } => Some(u32::from(count)),
        Asked::Retrieve { .. } => None,
    };
    match (program.answer(&sent), count) {
        (None, _) => PassOutcome::Round(sent.packet),
        (Some(published::Answer::NoOp { .. }), _) => PassOutcome::NoOp,
        (Some(published::Answer::Dropped("submitted")), Some(count)) => {
            PassOutcome::Submitted { taken: first(count), refused: 0 }
        }
        (Some(published::Answer::Dropped("submitted" | "repaired")), _) => PassOutcome::Ended,
        (Some(published::Answer::Dropped(_)), _) => PassOutcome::Dropped,
        (Some(published::Answer::Full { tids, .. }), Some(count)) => {
            let taken = first(count.saturating_sub(tids.len() as u32));
            PassOutcome::Submitted { taken, refused: first(count) & !taken }
        }
        // A search at the tail of a full queue: its task, although acknowledged, returns to its client.
        (Some(published::Answer::Full { .. }), None) => PassOutcome::Returned,
        (Some(published::Answer::Assign { client: ip, job: (token, submission), task, .. }), _) => {
            let word = |number: usize| task.words.get(number).copied().unwrap_or(0);
            let [_, index, attempt, argument_length] = word(5).to_be_bytes();
            let info = TaskInfo {
                tid: task.tid.into(),
                function: word(0).into(),
                priority: task.level,
                resources: task.resources,
                argument_length,
                attempt,
                argument: bytes_of(task.words.get(1..5).unwrap_or_default()),
            };
            let port = sent.packet.get(program.fields().client_port) as u16;
            let address = SocketAddrV4::new(Ipv4Addr::from(ip), port);
            PassOutcome::Assigned(Assigned { token, address, submission, index, info })
        }
    }
}

/// A bitmap of the first `count` tasks.
fn first(count: u32) -> u32 {
    u32::MAX.checked_shr(32 - count.min(32)).unwrap_or(0)
}
