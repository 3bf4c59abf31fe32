use super::Identity;
use midflight_endpoint::File;
use std::fmt::{self, Display, Formatter};

/// Why a log cannot be recovered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The directory belongs to another node.
    #[error("{} belongs to {found}, and this is {ours}: give this node its own data directory", Named(*.file))]
    OtherIdentity {
        /// The file that says so.
        file: File,
        /// Its owner.
        found: Identity,
        /// This node.
        ours: Identity,
    },
    /// A newer release wrote the file.
    #[error(
        "{} has format version {version}, and this release knows up to {ours}: use the release that wrote it, or a newer one",
        Named(*.file)
    )]
    NewerVersion {
        /// The file.
        file: File,
        /// Its version.
        version: u32,
        /// The newest version this release reads.
        ours: u32,
    },
    /// Durable bytes have changed.
    #[error(
        "{} is damaged at byte {offset}: {why}. The disk has changed what was safely written. Do not repair the file: replace \
         the disk if need be, remove this node from the replica set, and let it join again under a new identity with an \
         empty data directory",
        Named(*.file)
    )]
    Damaged {
        /// The file.
        file: File,
        /// Offset in bytes.
        offset: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// A file that was durable is gone.
    #[error(
        "{} is missing from the data directory. Put it back; if it is lost, remove this node from the replica set, and let it \
         join again under a new identity with an empty data directory",
        Named(*.file)
    )]
    Missing {
        /// The file.
        file: File,
    },
}

struct Named(File);

impl Display for Named {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            File::Identity => f.write_str("the file identity"),
            File::Log(number) => write!(f, "the file log-{number}"),
            File::Snapshot(number) => write!(f, "the file snapshot-{number}"),
            File::Safe => f.write_str("the file safe"),
        }
    }
}

impl Display for Identity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of set {} in cluster {:016x}", self.node, self.set, self.cluster)
    }
}
