//! A run of either evaluation, as data. Figures and sweeps are lists of them.

use crate::cell::{self, Cell, CellResult};
use crate::{flair, netrs};
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
    /// A store and its clients.
    Store(flair::Cell),
}

/// Result of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Of [`Experiment::Tasks`].
    Tasks(CellResult),
    /// Of [`Experiment::Cache`].
    Cache(netrs::CellResult),
    /// Of [`Experiment::Store`].
    Store(flair::CellResult),
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
    /// Of [`Experiment::Store`].
    #[error(transparent)]
    Store(#[from] flair::CellError),
}

impl Experiment {
    /// Reads an experiment from JSON. With a `placement` it is [`Experiment::Cache`], with a `system` [`Experiment::Store`].
    ///
    /// # Errors
    /// Says what cannot be read, and where.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        match Program::of_cell(&serde_json::from_str(text)?) {
            Program::Tasks => serde_json::from_str(text).map(Self::Tasks),
            Program::Cache => serde_json::from_str(text).map(Self::Cache),
            Program::Store => serde_json::from_str(text).map(Self::Store),
        }
    }

    /// The same with another seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        match self {
            Self::Tasks(cell) => Self::Tasks(Cell { seed, ..cell.clone() }),
            Self::Cache(cell) => Self::Cache(netrs::Cell { seed, ..cell.clone() }),
            Self::Store(cell) => Self::Store(flair::Cell { seed, ..cell.clone() }),
        }
    }

    /// Seed of its randomness.
    #[must_use]
    pub fn seed(&self) -> u64 {
        match self {
            Self::Tasks(cell) => cell.seed,
            Self::Cache(cell) => cell.seed,
            Self::Store(cell) => cell.seed,
        }
    }

    /// A hash of the sources that decide the result. Results of other sources are not reused.
    #[must_use]
    pub fn version(&self) -> &'static str {
        match self {
            Self::Tasks(cell) => cell.scheme.version(),
            Self::Cache(_) if self.needs_ilp() => env!("MIDFLIGHT_CELLS_PLANNED"),
            Self::Cache(_) => env!("MIDFLIGHT_CELLS_NETRS"),
            Self::Store(_) => env!("MIDFLIGHT_CELLS_FLAIR"),
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
            Self::Cache(_) | Self::Store(_) => None,
        }
    }

    /// The same with the trace in this folder.
    #[must_use]
    pub fn with_traces(&self, directory: &Path) -> Self {
        match self {
            Self::Tasks(cell) => Self::Tasks(cell.with_traces(directory)),
            Self::Cache(_) | Self::Store(_) => self.clone(),
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
            Self::Store(cell) => Ok(cell.check()?),
        }
    }

    /// Memory the run needs, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Tasks(cell) => cell.memory_bytes(),
            Self::Cache(cell) => cell.memory_bytes(),
            Self::Store(cell) => cell.memory_bytes(),
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
            Self::Store(cell) => Ok(Outcome::Store(flair::run(cell)?)),
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

impl From<flair::Cell> for Experiment {
    fn from(cell: flair::Cell) -> Self {
        Self::Store(cell)
    }
}

impl Outcome {
    /// Without wall time: identical in every run.
    #[must_use]
    pub fn deterministic(&self) -> Self {
        match self {
            Self::Tasks(result) => Self::Tasks(result.deterministic()),
            Self::Cache(result) => Self::Cache(result.deterministic()),
            Self::Store(result) => Self::Store(result.deterministic()),
        }
    }

    /// Simulated events.
    #[must_use]
    pub fn events(&self) -> u64 {
        match self {
            Self::Tasks(result) => result.events,
            Self::Cache(result) => result.events,
            Self::Store(result) => result.events,
        }
    }
}

/// Whose cell or result it is, by a key that only these have.
enum Program {
    Tasks,
    Cache,
    Store,
}

impl Program {
    fn of_cell(value: &Value) -> Self {
        Self::by_keys(value, "placement", "system")
    }

    fn of_result(value: &Value) -> Self {
        Self::by_keys(value, "latency", "shares")
    }

    fn by_keys(value: &Value, cache: &str, store: &str) -> Self {
        match (value.get(cache), value.get(store)) {
            (Some(_), _) => Self::Cache,
            (None, Some(_)) => Self::Store,
            (None, None) => Self::Tasks,
        }
    }
}

impl<'de> Deserialize<'de> for Experiment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match Program::of_cell(&value) {
            Program::Tasks => serde_json::from_value(value).map(Self::Tasks),
            Program::Cache => serde_json::from_value(value).map(Self::Cache),
            Program::Store => serde_json::from_value(value).map(Self::Store),
        };
        read.map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match Program::of_result(&value) {
            Program::Tasks => serde_json::from_value(value).map(Self::Tasks),
            Program::Cache => serde_json::from_value(value).map(Self::Cache),
            Program::Store => serde_json::from_value(value).map(Self::Store),
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
        let store = Experiment::read(r#"{"system":"follower-lease","zipf":0.99}"#).unwrap();
        assert!(matches!(&store, Experiment::Store(cell) if cell.clients == 300));
        assert_ne!(tasks.version(), cache.version());
        assert_ne!(tasks.version(), store.version());
        for experiment in [tasks, cache, flat, store] {
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
        let cache = netrs::Cell { placement: netrs::Placement::Tor, requests: 1_000, ..netrs::Cell::default() };
        let store = flair::Cell { clients: 10, keys: 100, warmup_ms: 5, duration_ms: 20, ..flair::Cell::default() };
        let outcomes = [Experiment::from(cache), store.into()].map(|cell| cell.run().unwrap().deterministic());
        assert!(matches!(outcomes, [Outcome::Cache(_), Outcome::Store(_)]));
        for outcome in outcomes {
            let back: Outcome = serde_json::from_str(&serde_json::to_string(&outcome).unwrap()).unwrap();
            assert_eq!(back, outcome);
            assert!(outcome.events() > 1_000);
        }
    }
}
