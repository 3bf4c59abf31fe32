//! Configuration and status of the cache program, its controller, its clients and its agents.
//!
//! | where | what |
//! |---|---|
//! | [`table`] | the table of an operator in a switch's configuration |
//! | [`status`](CacheStatus) | the status and the metrics of an operator |
//! | [`controller_file`] | the configuration file of a controller |
//! | [`controller_status`](ControllerSnapshot) | the status of a controller |
//! | [`clients`] | the configuration file of a cache's clients |
//! | [`agent_status`] | the status of an agent in front of a backend |

pub mod agent_status;
pub mod clients;
pub mod controller_file;
pub(crate) mod controller_status;
mod status;
pub mod table;

pub use clients::CacheFile;
pub use controller_file::ControllerFile;
pub use controller_status::{ControllerPlace, ControllerSnapshot, GroupLine, OperatorLine, PlanStatus, RsNodeLine};
pub use status::CacheStatus;
pub use table::CacheTable;
