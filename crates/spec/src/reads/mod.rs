//! What the reads program is tested against.

pub mod history;
mod interpreter;
mod model;
pub mod protocol;

pub use interpreter::{interpret, interpret_by};
pub use model::Model;
