//! The store program within the switch's laws: each READ goes to an up-to-date replica, in one pass.
//!
//! `docs/internals/asic-store.md` shows it stage by stage, compares it with the papers' registers, and lists the controller's tasks.
//!
//! - **One order.** All registers are in ingress, so a pass is one step: no packet sees a key group or a session half written.
//! - **Lazy reset.** A key group stores the *generation* of the session in which it was last written. If that is not the session's, the
//!   entry counts as stable, SEQ 0, index s. Only a WRITE stores its generation, and it writes all other words of the entry in the same
//!   pass.
//! - **32 bits.** SEQ and LOG_IDX are counted in 32 bits: those of a session have the same upper halves, 0 and that of s. At the last SEQ
//!   the session takes no more requests; an index beyond closes nothing. The controller asks for a new session before.

mod choose;
mod fields;
mod group;
mod packets;
mod route;
mod session;
mod view;

use crate::{Builder, Machine, Program, Refusal, Target};

pub use fields::{Fields, Kind, REPLICAS};
pub use packets::{Answer, Cut, Did, NewSession, Passing};
pub use view::{Group, Session};

use group::Groups;
use session::Sessions;

/// The size of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Places for replica sets, a power of two, at most 64.
    pub sets: u32,
    /// Each set has 2^this key groups, 2 to 16,384; all sets together at most 131,072.
    pub kgroup_bits: u32,
}

impl Config {
    /// FLAIR's: one set of 4,096 key groups.
    pub const FLAIR: Self = Self { sets: 1, kgroup_bits: 12 };
    /// As many sets of 4,096 key groups as Tofino 1 holds.
    pub const LARGEST: Self = Self { sets: 32, kgroup_bits: 12 };

    fn set_bits(self) -> u32 {
        self.sets.trailing_zeros()
    }

    fn cell_bits(self) -> u32 {
        self.set_bits() + self.kgroup_bits
    }

    fn check(self) -> Result<(), Refusal> {
        let wrong = |what| Err(Refusal::Parameters { what });
        match () {
            () if !self.sets.is_power_of_two() || self.sets > 64 => wrong("there are 1 to 64 sets, a power of two"),
            () if !(1..=14).contains(&self.kgroup_bits) || self.cell_bits() > 17 => {
                wrong("a set has 2 to 16384 key groups, and all sets together have at most 131072")
            }
            () => Ok(()),
        }
    }
}

/// The program, with the fields of its packets.
#[derive(Clone, Debug)]
pub struct Store {
    config: Config,
    program: Program,
    machine: Machine,
    fields: Fields,
    sessions: Sessions,
    groups: Groups,
}

impl Store {
    /// Builds the program; refuses a size that does not fit the target.
    pub fn build(config: Config, target: &Target) -> Result<Self, Refusal> {
        config.check()?;
        let mut b = Builder::new("store");
        let fields = Fields::declare(&mut b, config);
        let sessions = session::declare(&mut b, &fields, config);
        let groups = group::declare(&mut b, &fields, config);
        choose::declare(&mut b, &fields);
        route::declare(&mut b, &fields);
        b.bound("each", 1, "nothing recirculates");
        let program = b.build(target)?;
        Ok(Self { config, machine: Machine::load(&program), program, fields, sessions, groups })
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

    /// A machine without a session. (No lease is valid: the controller writes each set's end of lease when it adds the set.)
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine.clone()
    }
}
