//! The two engines of a switch, as benchmarks and soaks run them in labs.

use crate::processes::ours;
use anyhow::Result;
use clap::ValueEnum;
use midflight_lab::{Lab, Place};
use std::process::Command;

/// The engine of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabEngine {
    /// A process
    User,
    /// Programs in the kernel
    Kernel,
}

impl LabEngine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
        }
    }

    /// `midflight switch` with this engine, at the switch of a lab.
    pub(crate) fn switch(self, lab: &Lab) -> Result<Command> {
        let mut command = at(lab, Place::Switch)?;
        command.arg("switch");
        if self == Self::Kernel {
            command.args(["--engine", "kernel", "--interface", &lab.interfaces().join(",")]);
        }
        Ok(command)
    }

    /// Why it cannot run on this machine, if it cannot.
    pub(crate) fn missing(self) -> Option<String> {
        match self {
            Self::User => None,
            Self::Kernel => missing_kernel(),
        }
    }
}

/// Which of them a study is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabEngines {
    /// A process
    User,
    /// Programs in the kernel
    Kernel,
    /// One after the other
    Both,
}

impl LabEngines {
    pub(crate) fn all(self) -> &'static [LabEngine] {
        match self {
            Self::User => &[LabEngine::User],
            Self::Kernel => &[LabEngine::Kernel],
            Self::Both => &[LabEngine::User, LabEngine::Kernel],
        }
    }

    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Both => "both",
        }
    }
}

/// The port of a study's switch. What the kernel engine keeps is named after it, and that of other switches must not be
/// touched.
pub(crate) fn own_port() -> u16 {
    20_000 + (std::process::id() % 20_000) as u16
}

/// This program, to be run at a place.
pub(crate) fn at(lab: &Lab, place: Place) -> Result<Command> {
    Ok(lab.command(place, ours()?.get_program()))
}

/// Loads the programs, as a switch would.
#[cfg(feature = "kernel")]
fn missing_kernel() -> Option<String> {
    use midflight_dataplane::{TasksConfig, kernel::KernelTasks};
    let smallest = TasksConfig { queue: 1, slots: 1, clients: 1, ..TasksConfig::default() };
    KernelTasks::new(&smallest, 1, 0, 0).err().map(|error| error.to_string())
}

#[cfg(not(feature = "kernel"))]
fn missing_kernel() -> Option<String> {
    Some(midflight_host::Error::NoKernelEngine.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for engine in LabEngine::value_variants() {
            assert_eq!(engine.to_possible_value().unwrap().get_name(), engine.name());
        }
        for engines in LabEngines::value_variants() {
            assert_eq!(engines.to_possible_value().unwrap().get_name(), engines.name());
        }
    }
}
