//! What the reads program is tested against.

pub mod history;
mod interpreter;
mod model;
pub mod protocol;

pub use interpreter::{Compared, interpret, interpret_by};
pub use model::Model;
