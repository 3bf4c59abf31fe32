//! The configuration table and the metrics of the tasks program.

pub(crate) mod status;
mod table;

pub use status::{TaskTotals, TasksStatus};
pub use table::{AsicTable, TasksTable};
