//! The configuration table and the metrics of the tasks program.

pub(crate) mod status;
mod table;

pub use status::TasksStatus;
pub use table::{AsicTable, ExecutorsTable, TasksTable};
