//! A run of either evaluation, as data. Figures and sweeps are lists of them.

use crate::cell::{self, Cell, CellResult};
use crate::netrs;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use std::path::Path;

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Experiment {
    /// A task scheduler on a cluster.
    Tasks(Cell),
    /// Replica selection, in a network of clients and servers.
    Cache(netrs::Cell),
}

/// Result of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Of [`Experiment::Tasks`].
    Tasks(CellResult),
    /// Of [`Experiment::Cache`].
    Cache(netrs::CellResult),
}

/// Why an experiment cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Of [`Experiment::Tasks`].
    #[error(transparent)]
    Tasks(#[from] cell::CellError),
    /// Of [`Experiment::Cache`].
    #[error(transparent)]
    Cache(#[from] netrs::CellError),
}

impl Experiment {
    /// Reads an experiment from JSON. If it has a `placement`, it is [`Experiment::Cache`].
    ///
    /// # Errors
    /// Says what cannot be read, and where.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        match is_of_cache(&serde_json::from_str(text)?) {
            true => serde_json::from_str(text).map(Self::Cache),
            false => serde_json::from_str(text).map(Self::Tasks),
        }
    }

    /// The same with another seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        match self {
            Self::Tasks(cell) => Self::Tasks(Cell { seed, ..cell.clone() }),
            Self::Cache(cell) => Self::Cache(netrs::Cell { seed, ..cell.clone() }),
        }
    }

    /// Seed of its randomness.
    #[must_use]
    pub fn seed(&self) -> u64 {
        match self {
            Self::Tasks(cell) => cell.seed,
            Self::Cache(cell) => cell.seed,
        }
    }

    /// A hash of the sources that decide the result. Results of other sources are not reused.
    #[must_use]
    pub fn version(&self) -> &'static str {
        match self {
            Self::Tasks(cell) => cell.scheme.version(),
            Self::Cache(_) if self.needs_ilp() => env!("MIDFLIGHT_CELLS_PLANNED"),
            Self::Cache(_) => env!("MIDFLIGHT_CELLS_NETRS"),
        }
    }

    /// Whether it needs a build with the ILP.
    #[must_use]
    pub fn needs_ilp(&self) -> bool {
        matches!(self, Self::Cache(cell) if cell.placement == netrs::Placement::Ilp)
    }

    /// Its trace's file, if any.
    #[must_use]
    pub fn trace(&self) -> Option<&Path> {
        match self {
            Self::Tasks(cell) => cell.load.file(),
            Self::Cache(_) => None,
        }
    }

    /// The same with the trace in this folder.
    #[must_use]
    pub fn with_traces(&self, directory: &Path) -> Self {
        match self {
            Self::Tasks(cell) => Self::Tasks(cell.with_traces(directory)),
            Self::Cache(_) => self.clone(),
        }
    }

    /// Checks that all fields are valid.
    ///
    /// # Errors
    /// Says which field is invalid and what is allowed.
    pub fn check(&self) -> Result<(), ExperimentError> {
        match self {
            Self::Tasks(cell) => Ok(cell.check()?),
            Self::Cache(cell) => Ok(cell.check()?),
        }
    }

    /// Memory the run needs, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Tasks(cell) => cell.memory_bytes(),
            Self::Cache(cell) => cell.memory_bytes(),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// If it is invalid, or its trace cannot be read.
    pub fn run(&self) -> Result<Outcome, ExperimentError> {
        match self {
            Self::Tasks(cell) => Ok(Outcome::Tasks(cell::run(cell)?)),
            Self::Cache(cell) => Ok(Outcome::Cache(netrs::run(cell)?)),
        }
    }
}

impl From<Cell> for Experiment {
    fn from(cell: Cell) -> Self {
        Self::Tasks(cell)
    }
}

impl From<netrs::Cell> for Experiment {
    fn from(cell: netrs::Cell) -> Self {
        Self::Cache(cell)
    }
}

impl Outcome {
    /// Without wall time: identical in every run.
    #[must_use]
    pub fn deterministic(&self) -> Self {
        match self {
            Self::Tasks(result) => Self::Tasks(result.deterministic()),
            Self::Cache(result) => Self::Cache(result.deterministic()),
        }
    }

    /// Simulated events.
    #[must_use]
    pub fn events(&self) -> u64 {
        match self {
            Self::Tasks(result) => result.events,
            Self::Cache(result) => result.events,
        }
    }
}

fn is_of_cache(value: &Value) -> bool {
    value.get("placement").is_some()
}

impl<'de> Deserialize<'de> for Experiment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match is_of_cache(&value) {
            true => serde_json::from_value(value).map(Self::Cache),
            false => serde_json::from_value(value).map(Self::Tasks),
        };
        read.map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match value.get("latency").is_some() {
            true => serde_json::from_value(value).map(Self::Cache),
            false => serde_json::from_value(value).map(Self::Tasks),
        };
        read.map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_of_both_programs_come_back_from_json() {
        let tasks = r#"{"scheme":{"name":"spark"},"cluster":{"groups":[{"nodes":2,"executors":2,"resources":0}],"shards":1},
            "load":{"name":"sw2"},"seed":3,"warmup_ms":0,"duration_ms":200}"#;
        let tasks = Experiment::read(tasks).unwrap();
        assert!(matches!(tasks, Experiment::Tasks(_)) && tasks.seed() == 3);
        let flat = Experiment::read(r#"{"placement":"clients","network":false}"#).unwrap();
        assert!(matches!(&flat, Experiment::Cache(cell) if cell.network.is_none()));
        let said = Experiment::read(r#"{"placement":"clients","network":7}"#).unwrap_err().to_string();
        assert!(said.contains("or false"), "{said}");
        let cache = Experiment::read(r#"{"placement":"tor","selector":"hot-cold"}"#).unwrap();
        assert!(matches!(cache, Experiment::Cache(_)));
        assert_ne!(tasks.version(), cache.version());
        for experiment in [tasks, cache, flat] {
            let text = serde_json::to_string(&experiment.with_seed(9)).unwrap();
            let back: Experiment = serde_json::from_str(&text).unwrap();
            assert_eq!((back.seed(), &back), (9, &experiment.with_seed(9)));
        }
        let said = Experiment::read(r#"{"placement":"somewhere"}"#).unwrap_err().to_string();
        assert!(said.contains("`clients`, `tor`, `ilp`, `example`") && said.contains("line 1"), "{said}");
        assert!(Experiment::read("{}").unwrap_err().to_string().contains("scheme"));
    }

    #[test]
    fn outcomes_come_back_to_the_bit() {
        let cell = netrs::Cell { placement: netrs::Placement::Tor, requests: 1_000, ..netrs::Cell::default() };
        let outcome = Experiment::from(cell).run().unwrap().deterministic();
        let back: Outcome = serde_json::from_str(&serde_json::to_string(&outcome).unwrap()).unwrap();
        assert_eq!(back, outcome);
        assert_eq!((outcome.events() > 1_000, matches!(back, Outcome::Cache(_))), (true, true));
    }
}
