//! What the replicas program is tested against.

pub mod control;
mod interpreter;
mod model;

pub use interpreter::interpret;
pub use model::Model;
