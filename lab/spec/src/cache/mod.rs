//! Reference model and protocol model of the cache program.

pub mod control;
mod interpreter;
mod model;

pub use interpreter::interpret;
pub use model::Model;
