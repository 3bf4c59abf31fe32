//! The papers' queue, as published: Falcon's listings 1 to 3 (falcon-flair-thesis §3.3) and Bolt's priorities, constraints and
//! layout (bolt-thesis §3.2–3.4, ch. 4).
//!
//! The listings are kept exactly, errors included, so that a model checker can test them: a submit always increments `add_ptr` and a
//! retrieve always increments `retrieve_ptr`; a wrong pointer is corrected by a recirculated REPAIR packet, under a flag that allows
//! one REPAIR at a time; the eight flags (two a level) are one bitmap. One task enters a pass, the rest of the job recirculates. A
//! retrieve goes from level to level by RTRV_PRIO. A SWAP packet carries a task that the executor may not run.
//! `docs/internals/asic.md` shows the program stage by stage.
//!
//! # Where the listings break the switch's laws
//!
//! Some of the listings cannot be built as written. This is built instead:
//!
//! - **Listing 1, line 17** compares `retrieve_ptr_val > add_ptr_val`. No gateway orders 32 bits; the difference that
//!   tells "full" from "has space" (§3.3.2) is matched in a ternary table, and its sign is this comparison. So the comparison is
//!   serial: it survives the wrap of the round number, which the listing's would not.
//! - **Listing 1, lines 9 and 19** set two flags. They are bits of one register (Bolt, ch. 4), which a packet accesses once. That
//!   suffices, because a queue is not full and overrun at once. The stage before decides which bit.
//! - **Listing 2, line 3** asks whether the *entry* is valid, and Bolt keeps entries in egress. But an invalid one sends the packet to
//!   the next level, which needs a port, and only ingress chooses ports. So `is_valid` must be in ingress. It shares a 16-bit word
//!   with TRSRC, which Bolt keeps there for the same reason. One access still reads and sets it.
//! - **Listing 3** sets a pointer and clears its flag: two registers, two stages, one packet.
//! - **The last task of a job** is stored in egress, so its packet cannot end in ingress: it is sent towards recirculation and
//!   dropped at the end of egress.
//! - **A SWAP at the tail** (Bolt §3.4.3) "is treated as a job_submission packet". It has read `add_ptr` to learn that it is at the
//!   tail, so it cannot increment it: it recirculates once more as a SUBMIT of one task. The executor's no-op is a
//!   mirrored copy, which recirculates once, because one packet has one port.
//!
//! Where the texts leave a choice:
//!
//! - The tail is SWAP_IDX *equal to* `add_ptr` or beyond. "Larger than" alone, as the text has it, would put the task where the next
//!   submit stores its own.
//! - `pkt_retrieve_ptr` is `retrieve_ptr` as the packet's own retrieve left it; a reset of the search takes the new one.
//! - A SWAP that finds an invalid entry within the queue leaves its task there and answers a no-op: it holds nothing
//!   that could run.
//! - A packet of an unknown kind or level changes nothing and is dropped as `malformed`.

mod egress;
mod fields;
mod ingress;
mod packets;
#[cfg(feature = "check")]
mod subject;

use super::ENTRIES_MAX;
use crate::{Builder, Machine, Program, Refusal, Target};

pub use fields::{Fields, Kind};
pub use packets::{Answer, Task};

/// The answer to an executor that finds no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Empty {
    /// None: Falcon ignores the request, the worker repeats it after a while (§3.3.4).
    Ignored,
    /// A no-op task: Bolt (§3.2.4).
    NoOp,
}

/// The size and variant of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Priority levels, 1 to 4, each with a queue.
    pub levels: u32,
    /// Entries of each queue: a power of two, at least 2; all queues have at most [`ENTRIES_MAX`].
    pub size: u32,
    /// 32-bit words of TDESC, 0 to 8.
    pub words: u32,
    /// The answer to a retrieve that finds no task.
    pub empty: Empty,
}

impl Config {
    /// Bolt's prototype (ch. 4): four levels, 128 K tasks in all, and 20 bytes of TDESC.
    pub const BOLT: Self = Self { levels: 4, size: 32 << 10, words: 5, empty: Empty::NoOp };
    /// Falcon (§3.3.2): one queue of 128 K tasks.
    pub const FALCON: Self = Self { levels: 1, size: 128 << 10, words: 5, empty: Empty::Ignored };

    /// Bolt's with as many tasks as Tofino 2 has room for.
    pub const LARGEST_ON_TOFINO_2: Self = Self { size: 64 << 10, ..Self::BOLT };

    /// Bits of a pointer that are the index into the queue; the others count rounds.
    fn index_bits(self) -> u32 {
        self.size.trailing_zeros()
    }

    fn cell_bits(self) -> u32 {
        self.index_bits() + self.levels.next_power_of_two().trailing_zeros()
    }

    fn check(self) -> Result<(), Refusal> {
        let Self { levels, size, words, .. } = self;
        let wrong = |what| Err(Refusal::Parameters { what });
        match () {
            () if !(1..=4).contains(&levels) => wrong("there are 1 to 4 levels"),
            () if !size.is_power_of_two() || size < 2 || size > ENTRIES_MAX / levels.next_power_of_two() => {
                wrong("a queue's size is a power of two, at least 2, and all levels have at most 1048576 entries")
            }
            () if words > 8 => wrong("TDESC has at most 8 words"),
            () => Ok(()),
        }
    }
}

/// The program, with the fields of its packets.
#[derive(Clone, Debug)]
pub struct Published {
    config: Config,
    program: Program,
    machine: Machine,
    fields: Fields,
}

impl Published {
    /// Builds the program; refuses a size that does not fit the target.
    pub fn build(config: Config, target: &Target) -> Result<Self, Refusal> {
        config.check()?;
        let mut builder = Builder::new("published");
        let fields = Fields::declare(&mut builder, config);
        ingress::declare(&mut builder, &fields, config, target);
        egress::declare(&mut builder, &fields, config, target);
        bounds(&mut builder, config);
        let program = builder.build(target)?;
        Ok(Self { config, machine: Machine::load(&program), program, fields })
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

    /// A machine with empty queues.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine.clone()
    }

    /// The fields of its packets.
    #[must_use]
    pub fn fields(&self) -> &Fields {
        &self.fields
    }
}

fn bounds(b: &mut Builder, Config { levels, size, .. }: Config) {
    b.bound("SUBMIT of n tasks", "n", "one task enters a pass; a full queue ends it");
    b.bound("RETRIEVE", levels, "one level a pass");
    b.bound(
        "SWAP",
        size,
        "one entry a pass while `retrieve_ptr` rests; where it moves the search begins anew, without bound",
    );
    b.bound("REPAIR", 1, "it sets a pointer and is gone");
    b.bound("no-op of a SWAP", 1, "it only needs a port");
}
