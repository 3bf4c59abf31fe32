//! The configuration table and the metrics of the reads program.

mod status;
mod table;

pub use status::{ReadsStatus, SetStatus};
pub use table::{ReadMode, ReadsTable, ReplicaTable, SetTable, TimingTable};
