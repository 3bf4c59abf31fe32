//! What the reads program is tested against.

pub mod protocol;
