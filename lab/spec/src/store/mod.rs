//! Reference model, protocol model and history checker of the store program.

pub mod history;
mod interpreter;
mod model;
pub mod protocol;

pub use interpreter::{Compared, interpret, interpret_by};
pub use model::Model;
