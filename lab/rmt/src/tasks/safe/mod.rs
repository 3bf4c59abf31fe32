//! The same queue, with pointers that are never wrong: nothing needs repair, and no task is lost.
//!
//! `docs/internals/asic.md` shows it stage by stage, and explains why it is safe, which rules it breaks, and how that was checked.
//!
//! - **One order.** The whole queue is in ingress: packets access each register in the order in which they entered, and no traffic manager
//!   is between a pointer and its entry.
//! - **Credit.** A level takes a task only if `accepted` ≠ limit; the limit is a lagging copy of `credit`, N above the number of tasks that
//!   have left. A submission that finds the copy used up reads the original after the entries, recirculates once with it, and is refused
//!   only if that is used up too. A lagging limit refuses too early, never too late.
//! - **Counts.** A retrieve must know in one pass which level has a task. So each level counts its entries, in one access for two levels;
//!   after the counts a pointer moves only if there is a task.
//! - **Room for searches.** `accepted` − (`credit` − N) also counts the tasks that searches carry, so a search that ends at the tail always
//!   finds room.
//!
//! Each kind of pass keeps three invariants, for any N. Let Q be the entries from head to tail, q their number, and h the number of tasks
//! that packets hold:
//!
//! 1. tail − head = the level's count = q, and each entry of Q holds an accepted task that is nowhere else;
//! 2. `accepted` + N − `credit` = q + h ≤ N;
//! 3. `accepted` ≤ `credit_seen` ≤ `credit`, and a value of `credit` that a REST carries is ≤ `credit`, all as serial numbers.
//!
//! - A SUBMIT or REST whose task is taken: the limit is a value that `credit` had. By 3, `accepted` was below it, so q + h < N: the entry at
//!   the tail is not in Q. Tail, count and `accepted` rise by 1. If it is not taken, only `credit_seen` may have risen.
//! - A RETRIEVE: a count that is not 0 falls by 1, so the head may rise by 1. A packet holds the task, or it leaves and `credit` rises by 1.
//! - A SWAP within the queue: its place is in Q; both tasks are exchanged. One that leaves raises `credit`. At the tail, its task moves into
//!   Q, and q + h stays: h was at least 1, so q < N, and the entry at the tail is not in Q. If the head has overtaken it and the queue is
//!   empty, nothing changes; it recirculates.
//!
//! A pointer counts entries in its upper bits and has its level in its lowest two (none with one level, one with two), so that its low bits
//! are the entry's index among those of all levels, without a computation.

mod entries;
mod fields;
pub mod front;
#[cfg(feature = "check")]
mod guarded;
mod packets;
#[cfg(feature = "check")]
mod planted;
mod queue;
mod route;
#[cfg(feature = "check")]
mod subject;
mod view;

use super::ENTRIES_MAX;
use crate::{Builder, Machine, Program, Refusal, Register, Target, Word};
use entries::Stored;
use queue::Pointers;

pub use fields::{Fields, Kind, Why};
pub use front::Guarded;
pub use packets::{Answer, Task};
#[cfg(feature = "check")]
pub use planted::Planted;
pub use view::Level;

/// The size and variant of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Priority levels, 1 to 4, each with a queue.
    pub levels: u32,
    /// Entries of each queue, a power of two: at least 2; all queues have at most [`ENTRIES_MAX`].
    pub size: u32,
    /// 32-bit words of argument, 1 to 4.
    pub words: u32,
}

impl Config {
    /// As many tasks as Tofino 1 holds, in four levels.
    pub const LARGEST: Self = Self { levels: 4, size: 32 << 10, words: 1 };
    /// As many as Tofino 1 holds with 16 bytes of argument.
    pub const WIDEST: Self = Self { levels: 4, size: 16 << 10, words: 4 };
    /// As many as Tofino 2 holds.
    pub const LARGEST_ON_TOFINO_2: Self = Self { size: 64 << 10, ..Self::LARGEST };
    /// As many as Tofino 2 holds with 16 bytes of argument.
    pub const WIDEST_ON_TOFINO_2: Self = Self { size: 32 << 10, ..Self::WIDEST };

    /// Distance of two consecutive pointers of one level.
    fn step(self) -> u32 {
        self.levels.next_power_of_two()
    }

    fn cell_bits(self) -> u32 {
        (self.size * self.step()).trailing_zeros()
    }

    fn check(self) -> Result<(), Refusal> {
        let Self { levels, size, words } = self;
        let wrong = |what| Err(Refusal::Parameters { what });
        match () {
            () if !(1..=4).contains(&levels) => wrong("there are 1 to 4 levels"),
            () if !size.is_power_of_two() || size < 2 || size > ENTRIES_MAX / self.step() => {
                wrong("a queue's size is a power of two, at least 2, and all levels have at most 1048576 entries")
            }
            () if !(1..=4).contains(&words) => wrong("an argument has 1 to 4 words"),
            () => Ok(()),
        }
    }
}

/// The program, with the fields of its packets.
#[derive(Clone, Debug)]
pub struct Safe {
    config: Config,
    /// Places of each level that the controller grants.
    room: u32,
    program: Program,
    machine: Machine,
    fields: Fields,
    registers: Registers,
}

#[derive(Clone, Debug)]
struct Registers {
    pointers: Pointers,
    credit: Register,
    /// Of entries, one word after the other.
    entries: Vec<Stored>,
}

impl Safe {
    /// Builds the program; refuses a size that does not fit the target.
    pub fn build(config: Config, target: &Target) -> Result<Self, Refusal> {
        Self::built(config, target, |_, _| ())
    }

    /// The same, with a last change before the check against the laws.
    fn built(config: Config, target: &Target, change: impl FnOnce(&mut Builder, &Fields)) -> Result<Self, Refusal> {
        config.check()?;
        let mut b = Builder::new("safe");
        let fields = Fields::declare(&mut b, config);
        let pointers = queue::declare(&mut b, &fields, config);
        let entries = entries::declare(&mut b, &fields, config, target);
        let credit = route::declare(&mut b, &fields, config);
        let registers = Registers { pointers, credit, entries };
        bounds(&mut b, config);
        change(&mut b, &fields);
        let program = b.build(target)?;
        Ok(Self { config, room: config.size, machine: Machine::load(&program), program, fields, registers })
    }

    /// The same, with a controller that grants fewer places than a level has entries.
    #[cfg(feature = "check")]
    pub(in crate::tasks) fn of_room(self, room: Option<u32>) -> Self {
        let size = self.config.size;
        Self { room: room.map_or(size, |room| room.min(size)), ..self }
    }

    /// The configuration of the build.
    #[must_use]
    pub fn config(&self) -> Config {
        self.config
    }

    /// The program itself.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The fields of its packets.
    #[must_use]
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// A machine with empty queues, as the controller sets it up.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine_from(0)
    }

    /// The same, with serial numbers that begin at `start`: their values must not matter.
    #[must_use]
    pub fn machine_from(&self, start: u32) -> Machine {
        let (r, mut machine) = (&self.registers.pointers, self.machine.clone());
        for level in 0..self.config.levels {
            let pointer = start.wrapping_mul(self.config.step()) | level;
            let full = start.wrapping_add(self.room);
            let all = [
                (r.add, pointer),
                (r.retrieve, pointer),
                (r.accepted, start),
                (self.registers.credit, full),
                (r.credit_seen, full),
            ];
            all.into_iter().for_each(|(register, value)| machine.write(register, level, Word::Low, value));
        }
        machine
    }
}

fn bounds(b: &mut Builder, Config { levels, .. }: Config) {
    b.bound("SUBMIT of n tasks", "2 n", "one task enters a pass; a task may go round once for credit");
    b.bound("RETRIEVE", 1, "all levels in one pass");
    let stale = "one for each entry that it looks at, and one where others emptied the queue under it";
    let seen = format!("what is queued, and what arrives meanwhile, in each of {levels} levels");
    b.bound("SWAP", seen, stale);
}
