//! What is tried, as data. A run is a pure function of it.

use super::{Fault, Net, Pass, What};
use midflight_control::file::{self, FileError};
use midflight_endpoint::{MS, Nanos};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// All that a run follows from.
pub trait Trial: Clone + PartialEq + Serialize + DeserializeOwned + 'static {
    /// Its faults.
    type What: What;

    /// What makes it smaller, in the order in which it is tried.
    const PASSES: &'static [Pass<Self>];

    /// Of all randomness inside the world.
    fn seed(&self) -> u64;

    /// When all faults end: dead processes start again, and the network has its normal faults.
    fn heal_ms(&self) -> u64;

    /// The network outside of faults.
    fn network(&self) -> Net;

    /// The faults.
    fn faults(&self) -> &[Fault<Self::What>];

    /// The same, to be changed.
    fn faults_mut(&mut self) -> &mut Vec<Fault<Self::What>>;

    /// How large it is, for people.
    fn size(&self) -> String;

    /// Whether it makes sense.
    ///
    /// # Errors
    /// Says what does not, and what it may be.
    fn validate(&self) -> Result<(), BadTrial>;

    /// When a fault begins, and ends.
    fn times(&self, fault: &Fault<Self::What>) -> (Nanos, Nanos) {
        let begin = fault.at_ms.min(self.heal_ms());
        (begin * MS, (begin + fault.for_ms).min(self.heal_ms()) * MS)
    }

    /// Reads one that was written.
    ///
    /// # Errors
    /// Where the file cannot be read, or makes no sense; the message says what would.
    fn read(path: &Path) -> Result<Self, FileError> {
        let trial: Self = file::parse(&file::read(path, "docs/checking.md says what a trial is")?, path)?;
        trial.validate().map_err(|error| FileError::value(path, error))?;
        Ok(trial)
    }

    /// As a file that [`Trial::read`] reads.
    ///
    /// # Errors
    /// Where a number does not fit the format: a seed of 2^63 or more.
    fn to_toml(&self) -> Result<String, BadTrial> {
        toml::to_string(self).map_err(|error| BadTrial(error.to_string()))
    }
}

/// A trial makes no sense, or cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadTrial(pub String);

/// The methods of a trial that are the same for every program: fields of these names have what they return.
macro_rules! kept_in_fields {
    () => {
        fn seed(&self) -> u64 {
            self.seed
        }

        fn heal_ms(&self) -> u64 {
            self.heal_ms
        }

        fn network(&self) -> $crate::check::Net {
            self.network
        }

        fn faults(&self) -> &[$crate::check::Fault<Self::What>] {
            &self.faults
        }

        fn faults_mut(&mut self) -> &mut Vec<$crate::check::Fault<Self::What>> {
            &mut self.faults
        }
    };
}
pub(crate) use kept_in_fields;
