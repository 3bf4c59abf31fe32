//! Scenarios: files with a cluster, its network, workload and faults, from which a world is built. `docs/simulator.md`
//! explains how to write such files.

mod build;
mod check;
mod error;
mod jobs;
mod memory;
mod outcome;
mod parts;
mod values;

pub use build::Run;
pub use error::ScenarioError;
pub use outcome::{Delays, Disturbance, Outcome};
pub use parts::{
    Asic, Cluster, Datagrams, Demand, Drift, Fault, Group, Host, Link, NetworkPart, Partition, PlacesPart, Queue,
    Scenario, ScenarioEngine, ShapeName, SwitchPlace, WorkloadPart,
};
pub use values::{Time, Who};

use midflight_control::file::{self, FileError};
use std::path::Path;

/// Remarks from reading the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Skipped lines of the trace.
    pub malformed: u64,
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// An unreadable file, an unknown key, a value of a wrong type or out of bounds.
    pub fn load(file: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&file::read(file, "docs/simulator.md has one to start from")?, file)
    }

    /// As [`Scenario::load`], from text; `file` is what errors name.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, file: &Path) -> Result<Self, ScenarioError> {
        let scenario: Self = file::parse(text, file)?;
        scenario.check().map_err(|message| FileError::value(file, message))?;
        Ok(scenario)
    }
}
