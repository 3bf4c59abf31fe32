//! The operator's requests to a replica, on the socket of its address. Each names its replica: two stores on one machine may have replicas
//! of the same port, and in two network namespaces even of the same address.

use super::{ReplicaStatus, SetTable};
use crate::admin;
use midflight_store::replica::{HAND_OVER_PROMISES, Member};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A replica answers from memory, so a slower one is stopped or stuck.
const PATIENCE: Duration = Duration::from_secs(3);

/// An operator's request to a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplicaRequest {
    /// Asks for its status.
    Status,
    /// Adds a member, which must be started to join.
    Add(Member),
    /// Removes the member of this id.
    Remove(u64),
    /// Transfers leadership to the member of this id.
    Transfer(u64),
    /// Deletes all data.
    Flush,
    /// Writes all data to a new file at this absolute path.
    Backup(PathBuf),
}

/// The answer of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplicaAnswer {
    /// The request has begun; the status shows when it is done.
    Begun,
    /// The request is done.
    Done,
    /// The backup is written; its number of keys.
    Keys(u64),
    /// The status.
    Status(Box<ReplicaStatus>),
}

/// A store may have several GiB, and its disk may be slow.
const BACKUP_PATIENCE: Duration = Duration::from_secs(3_600);

/// Stands for an unknown store, such as that of `midflight up --store`. No store has this number.
pub const ANY_CLUSTER: u64 = 0;

/// A replica among those of all stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaName {
    /// Its store; [`ANY_CLUSTER`] matches any.
    pub cluster: u64,
    /// Its set.
    pub set: u16,
    /// Its id.
    pub replica: u64,
}

impl Display for ReplicaName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "replica {} of set {}", self.replica, self.set)?;
        if self.cluster == ANY_CLUSTER { Ok(()) } else { write!(f, " of cluster {}", self.cluster) }
    }
}

/// A request and the replica that it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToReplica {
    to: ReplicaName,
    request: ReplicaRequest,
}

impl ToReplica {
    /// Takes the request out, if it is for this replica.
    ///
    /// # Errors
    /// If it is for another one.
    pub fn take(self, here: ReplicaName) -> Result<ReplicaRequest, String> {
        let to =
            if self.to.cluster == ANY_CLUSTER { ReplicaName { cluster: here.cluster, ..self.to } } else { self.to };
        if to == here { Ok(self.request) } else { Err(format!("this is {here}, and not {}", self.to)) }
    }
}

/// Why a request to a replica failed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No process listens there.
    #[error("{0} does not run on this machine")]
    Absent(ReplicaName),
    /// It is stopped, or stuck.
    #[error(
        "{name} has given no answer for {} s: its process is stopped (kill -CONT continues it) or stuck, and its log may say why",
        patience.as_secs()
    )]
    Silent {
        /// The replica.
        name: ReplicaName,
        /// The timeout.
        patience: Duration,
    },
    /// Its socket cannot be used.
    #[error("{name} cannot be asked at {}: {source}", path.display())]
    Failed {
        /// The replica.
        name: ReplicaName,
        /// Its socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It refused the request.
    #[error("{0}")]
    Refused(String),
}

/// The operator's socket of the replica with this UDP address.
#[must_use]
pub fn socket_path(address: SocketAddr) -> PathBuf {
    admin::default_path("replica", address)
}

impl SetTable {
    /// The name of one of its replicas.
    #[must_use]
    pub fn name_of(&self, replica: u64) -> ReplicaName {
        ReplicaName { cluster: self.cluster, set: self.number, replica }
    }

    /// Sends a request to one of its replicas, which must run on this machine.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask(&self, replica: u64, request: ReplicaRequest) -> Result<ReplicaAnswer, AskError> {
        let member = self.member(replica).map_err(AskError::Refused)?;
        let (name, path) = (self.name_of(replica), socket_path(member.address));
        let hand_over = self.timing.promise * HAND_OVER_PROMISES as u32;
        let patience = match request {
            ReplicaRequest::Transfer(_) => PATIENCE + hand_over,
            ReplicaRequest::Backup(_) => BACKUP_PATIENCE,
            _ => PATIENCE,
        };
        let answer = admin::ask(&path, &ToReplica { to: name, request }, patience);
        answer
            .map_err(|source| match source.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => AskError::Absent(name),
                ErrorKind::TimedOut => AskError::Silent { name, patience },
                _ => AskError::Failed { name, path, source },
            })?
            .map_err(|why| AskError::Refused(format!("{name}: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_a_request_is_for_the_replica_that_it_names() {
        let set = SetTable::on_loopback(42, 3, 1, 7700);
        let asked = ToReplica { to: set.name_of(2), request: ReplicaRequest::Flush };
        let read: ToReplica = serde_json::from_str(&serde_json::to_string(&asked).unwrap()).unwrap();
        assert_eq!(read.clone().take(set.name_of(2)), Ok(ReplicaRequest::Flush));
        let other = ReplicaName { cluster: 43, ..set.name_of(2) };
        let refused = read.take(other).unwrap_err();
        assert_eq!(refused, "this is replica 2 of set 1 of cluster 43, and not replica 2 of set 1 of cluster 42");
        let any =
            ToReplica { to: ReplicaName { cluster: ANY_CLUSTER, ..set.name_of(2) }, request: ReplicaRequest::Status };
        assert_eq!(any.clone().take(set.name_of(2)), Ok(ReplicaRequest::Status));
        assert_eq!(
            any.take(set.name_of(1)).unwrap_err(),
            "this is replica 1 of set 1 of cluster 42, and not replica 2 of set 1"
        );
        let [one, two] = ["127.0.0.1:7710", "127.0.0.2:7710"].map(|address| socket_path(address.parse().unwrap()));
        assert_ne!(one, two);
    }
}
