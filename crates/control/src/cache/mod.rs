//! Configuration and status of the cache program, its controller, its clients and its agents.
//!
//! | where | what |
//! |---|---|
//! | [`table`] | the configuration file of a controller |
//! | [`operator`] | the table of an operator in a switch's configuration |
//! | [`clients`] | the configuration file of a cache's clients |
//! | [`agent`] | the status of an agent in front of a backend |
//! | [`snapshot`](ControllerSnapshot) | the status of a controller |

pub mod agent;
pub mod clients;
pub mod operator;
pub(crate) mod snapshot;
mod status;
pub mod table;

pub use clients::CacheFile;
pub use operator::CacheTable;
pub use snapshot::{ControllerPlace, ControllerSnapshot, GroupLine, OperatorLine, PlanStatus, RsNodeLine};
pub use status::CacheStatus;
pub use table::ControllerFile;
