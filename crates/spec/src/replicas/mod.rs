//! What the replicas program is tested against.

mod interpreter;
mod model;

pub use interpreter::interpret;
pub use model::Model;
