//! The configuration table and the metrics of the reads program, and of its replicas.

mod addresses;
mod operator;
mod order;
mod replica;
mod status;
mod table;
mod times;

pub use operator::{ANY_CLUSTER, AskError, ReplicaAnswer, ReplicaName, ReplicaRequest, ToReplica, socket_path};
pub use order::{SetAnswer, SetRequest};
pub use replica::{MemberStatus, ReplicaStart, ReplicaStatus, SessionStatus};
pub use status::{ReadsStatus, SetStatus};
pub use table::{BoundsTable, ReadMode, ReadsTable, ReplicaTable, SetTable, TimingTable};
pub use times::TimesStatus;
