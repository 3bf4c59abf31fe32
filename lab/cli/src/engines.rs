//! Engines of a switch in labs.

use crate::processes::ours;
use anyhow::Result;
use clap::ValueEnum;
use midflight_net::{Lab, Place};
use std::process::Command;

/// Has a name on the command line.
pub(crate) trait Named: ValueEnum {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl<V: ValueEnum> Named for V {}

/// The engine of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabEngine {
    /// A process
    User,
    /// Programs in the kernel
    Kernel,
}

impl LabEngine {
    /// `midflight switch` at the switch of a lab.
    pub(crate) fn switch(self, lab: &Lab) -> Result<Command> {
        self.switch_at(lab, Place::Switch)
    }

    /// The same at any switch of the lab.
    pub(crate) fn switch_at(self, lab: &Lab, place: Place) -> Result<Command> {
        let mut command = at(lab, place)?;
        command.arg("switch");
        if self == Self::Kernel {
            command.args(["--engine", "kernel", "--interface", &lab.interfaces_of(place).join(",")]);
        }
        Ok(command)
    }

    /// `None` if it can run on this machine.
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
}

/// The kernel engine names its pinned state after the port, so it must not be another switch's.
pub(crate) fn own_port() -> u16 {
    20_000 + (std::process::id() % 20_000) as u16
}

/// This program, at a place.
pub(crate) fn at(lab: &Lab, place: Place) -> Result<Command> {
    Ok(lab.command(place, ours()?.get_program()))
}

/// Loads the BPF programs.
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
