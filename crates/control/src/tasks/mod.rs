//! The configuration table and the metrics of the tasks program.

pub(crate) mod status;
mod table;

pub use status::{TasksStatus, quantile_us};
pub use table::{ExecutorsTable, TasksTable};
