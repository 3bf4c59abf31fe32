//! A trial as data. A run is a pure function of it.

use super::{Fault, FaultKind, Net, Pass};
use midflight_control::file::{self, FileError};
use midflight_endpoint::{MS, Nanos};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// All input of a run.
pub trait Trial: Clone + PartialEq + Serialize + DeserializeOwned + 'static {
    /// The faults' type.
    type FaultKind: FaultKind;

    /// Ways to shrink it, in the order in which they are tried.
    const PASSES: &'static [Pass<Self>];

    /// Seed of all randomness in the world.
    fn seed(&self) -> u64;

    /// When all faults end: dead processes restart, and the network is normal again.
    fn heal_ms(&self) -> u64;

    /// The network outside of faults.
    fn network(&self) -> Net;

    /// The faults.
    fn faults(&self) -> &[Fault<Self::FaultKind>];

    /// The faults, mutable.
    fn faults_mut(&mut self) -> &mut Vec<Fault<Self::FaultKind>>;

    /// Its size, in words.
    fn size(&self) -> String;

    /// Checks it.
    ///
    /// # Errors
    /// If a field is invalid; says which, and the valid range.
    fn validate(&self) -> Result<(), BadTrial>;

    /// When a fault begins and ends.
    fn times(&self, fault: &Fault<Self::FaultKind>) -> (Nanos, Nanos) {
        let begin = fault.at_ms.min(self.heal_ms());
        (begin * MS, (begin + fault.for_ms).min(self.heal_ms()) * MS)
    }

    /// Reads a written trial.
    ///
    /// # Errors
    /// If the file is unreadable or invalid; says what would be valid.
    fn read(path: &Path) -> Result<Self, FileError> {
        let trial: Self = file::parse(&file::read(path, "docs/checking.md says what a trial is")?, path)?;
        trial.validate().map_err(|error| FileError::value(path, error))?;
        Ok(trial)
    }

    /// The text that [`Trial::read`] reads.
    ///
    /// # Errors
    /// If a number does not fit the format: a seed of 2^63 or more.
    fn to_toml(&self) -> Result<String, BadTrial> {
        toml::to_string(self).map_err(|error| BadTrial(error.to_string()))
    }
}

/// An invalid trial, or one that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadTrial(pub String);

/// The methods that only return a field of the same name.
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

        fn faults(&self) -> &[$crate::check::Fault<Self::FaultKind>] {
            &self.faults
        }

        fn faults_mut(&mut self) -> &mut Vec<$crate::check::Fault<Self::FaultKind>> {
            &mut self.faults
        }
    };
}
pub(crate) use kept_in_fields;
