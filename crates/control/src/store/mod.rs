//! The configuration table and the metrics of the store program, and of its replicas.

mod addresses;
mod replica;
mod replica_requests;
mod set_requests;
mod status;
mod table;
mod times;

pub use midflight_store::replica::Mode as ReadMode;
pub use replica::{MemberStatus, ReplicaStart, ReplicaStatus, SessionStatus};
pub use replica_requests::{ANY_CLUSTER, AskError, ReplicaAnswer, ReplicaName, ReplicaRequest, ToReplica, socket_path};
pub use set_requests::{SetAnswer, SetRequest};
pub use status::{SetStatus, StoreStatus};
pub use table::{BoundsTable, ReplicaTable, SetTable, StoreTable, TimingTable};
pub use times::TimesStatus;
