//! What the control side knows of the tasks program.

pub(crate) mod status;
mod table;

pub use status::{TaskTotals, TasksStatus};
pub use table::{AsicTable, TasksTable};
