//! The cache program within the switch's laws: the rules of NetRS's operator, as tables that the controller fills.
//!
//! `docs/internals/asic-cache.md` shows it stage by stage and lists the controller's tasks.
//!
//! - **Tables only.** Packets change nothing that others see, except the monitor's counts. So a pass is a step, and needs no argument.
//! - **One table per lookup.** A packet looks into a table once. So hosts, servers and operators, one table in the soft engine, are five
//!   here: senders, hosts of the rack, clients, addresses that are not clients, servers.
//! - **Copies.** A mirror session makes the selector's copy of an answer. It returns as a packet of its own, and takes a second pass.

mod fields;
mod monitor;
mod packets;
#[cfg(feature = "check")]
mod planted;
mod role;
mod route;
mod rules;

use crate::{Builder, Machine, Program, Refusal, Register, Target, Word};

pub use fields::{Fields, Kind};
pub use packets::{Came, Did, Output, Role};
#[cfg(feature = "check")]
pub use planted::Planted;
pub use rules::{End, Place, Rules};

/// Tiers of switches.
pub const TIERS: usize = 4;

/// The size of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Hosts, servers and operators.
    pub places: u32,
    /// Racks.
    pub racks: u32,
    /// Traffic groups, at most 32,768.
    pub groups: u32,
    /// RSNode ids.
    pub rsnodes: u32,
    /// Clients whose cookie is known.
    pub known: u32,
    /// At each tier: the bits that the markers of two racks share if packets between them pass no higher one.
    pub masks: [u32; TIERS],
}

impl Config {
    /// The default bounds of an operator.
    pub const DEFAULT: Self = Self {
        places: 4_096,
        racks: 256,
        groups: 1_024,
        rsnodes: 4_096,
        known: 4_096,
        masks: [0, 0xffff_0000, 0xffff_ffff, 0],
    };
    /// As many hosts, servers and operators as Tofino 1 holds, each in a separate stage.
    pub const LARGEST: Self =
        Self { places: 32 << 10, racks: 8 << 10, groups: 16 << 10, known: 16 << 10, ..Self::DEFAULT };

    fn cell_bits(&self) -> u32 {
        (self.groups * TIERS as u32).next_power_of_two().trailing_zeros()
    }
}

/// The program, with the fields of its packets.
#[derive(Clone, Debug)]
pub struct Cache {
    config: Config,
    program: Program,
    machine: Machine,
    fields: Fields,
    monitor: Register,
}

impl Cache {
    /// Builds the program with these rules in its tables.
    ///
    /// # Errors
    /// If it does not fit the target.
    pub fn build(config: Config, rules: &Rules, target: &Target) -> Result<Self, Refusal> {
        Self::built(config, rules, target, |_, _| ())
    }

    fn built(
        config: Config,
        rules: &Rules,
        target: &Target,
        change: impl FnOnce(&mut Builder, &Fields),
    ) -> Result<Self, Refusal> {
        if config.groups == 0 || config.groups > 32 << 10 {
            return Err(Refusal::Parameters { what: "there are 1 to 32768 traffic groups" });
        }
        let mut b = Builder::new("cache");
        let fields = Fields::declare(&mut b, config);
        rules::declare(&mut b, &fields, &config, rules);
        role::declare(&mut b, &fields);
        route::declare(&mut b, &fields);
        let monitor = monitor::declare(&mut b, &fields, &config, rules);
        b.bound("each", 1, "nothing recirculates");
        b.bound("copy for the selector", 1, "it is mirrored by the answer's pass, and mirrors nothing itself");
        change(&mut b, &fields);
        let program = b.build(target)?;
        Ok(Self { config, machine: Machine::load(&program), program, fields, monitor })
    }

    /// The configuration of the build.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
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

    /// A machine with zero counts.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine.clone()
    }

    /// Reads and clears the monitor's counts of a traffic group.
    pub fn take_counts(&self, machine: &mut Machine, group: u16) -> [u32; TIERS] {
        std::array::from_fn(|tier| {
            let cell = u32::from(group) * TIERS as u32 + tier as u32;
            let count = machine.read(self.monitor, cell, Word::Low);
            machine.write(self.monitor, cell, Word::Low, 0);
            count
        })
    }

    /// The monitor's counts of a traffic group since they were last taken.
    #[must_use]
    pub fn counts(&self, machine: &Machine, group: u16) -> [u32; TIERS] {
        let first = u32::from(group) * TIERS as u32;
        std::array::from_fn(|tier| machine.read(self.monitor, first + tier as u32, Word::Low))
    }
}
