//! Scenarios: a cluster, its network, what is submitted and what goes wrong, in a file; a world out of it.
//! `docs/simulator.md` is for those who write such files.

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
    Cluster, Datagrams, Demand, Drift, Engine, Fault, FormatName, Group, Host, Link, NetworkPart, Partition, Queue,
    Scenario, ShapeName, WorkloadPart,
};
pub use values::{Time, Who};

use std::path::Path;

/// What reading had to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Lines of the trace that were left out.
    pub malformed: u64,
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// An unreadable file, an unknown key, a value of a wrong type or outside its bounds.
    pub fn load(file: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| ScenarioError::Unreadable { file: file.to_path_buf(), error })?;
        Self::parse(&text, file)
    }

    /// As [`Scenario::load`], from text; `file` is what errors name.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, file: &Path) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| ScenarioError::at_line(text, file, &error))?;
        scenario.check().map_err(|message| ScenarioError::Value { file: file.to_path_buf(), message })?;
        Ok(scenario)
    }
}
