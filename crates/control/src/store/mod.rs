//! The configuration table and the metrics of the store program, and of its replicas.

mod addresses;
mod operator;
mod order;
mod replica;
mod status;
mod table;
mod times;

pub use midflight_store::replica::Mode as ReadMode;
pub use operator::{ANY_CLUSTER, AskError, ReplicaAnswer, ReplicaName, ReplicaRequest, ToReplica, socket_path};
pub use order::{SetAnswer, SetRequest};
pub use replica::{MemberStatus, ReplicaStart, ReplicaStatus, SessionStatus};
pub use status::{SetStatus, StoreStatus};
pub use table::{BoundsTable, ReplicaTable, SetTable, StoreTable, TimingTable};
pub use times::TimesStatus;
