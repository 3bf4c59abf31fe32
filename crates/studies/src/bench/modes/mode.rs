//! The modes that are compared.

use crate::engines::Named;
use clap::ValueEnum;
use midflight_control::reads::SetTable;

/// How a store serves reads, by its word in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Mode {
    Flair,
    Raft,
    LeaderLease,
    FollowerLease,
    #[value(name = "follower-readindex")]
    FollowerReadIndex,
    Unreplicated,
}

impl Mode {
    /// Its word in names of results.
    pub(super) fn result(self) -> String {
        self.name().replace('-', "_")
    }

    /// Of a set that would have so many.
    pub(super) fn replicas(self, usual: usize) -> usize {
        if self == Self::Unreplicated { 1 } else { usual }
    }

    /// The configuration of a set in this mode.
    pub(super) fn configured(self, set: &SetTable) -> String {
        format!("{}reads = \"{}\"\n", set.to_toml(), self.name())
    }
}
