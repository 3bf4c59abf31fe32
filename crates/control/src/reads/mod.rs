//! The configuration table and the metrics of the reads program, and of its replicas.

mod replica;
mod status;
mod table;

pub use replica::{MemberStatus, ReplicaAnswer, ReplicaRequest, ReplicaStart, ReplicaStatus, SessionStatus};
pub use status::{ReadsStatus, SetStatus};
pub use table::{BoundsTable, ReadMode, ReadsTable, ReplicaTable, SetTable, TimingTable};
