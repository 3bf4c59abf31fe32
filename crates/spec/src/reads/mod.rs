//! What the reads program is tested against.

mod interpreter;
mod model;
pub mod protocol;

pub use interpreter::interpret;
pub use model::Model;
