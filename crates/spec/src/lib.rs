//! What the programs' engines are held to: a reference model in plain Rust, and stories that every engine must answer alike.
//!
//! - [`model`] says what the protocol demands of each packet, and plays random traffic before an engine and itself;
//! - [`transcript`] runs the stories of `transcripts/`: packets in, packets out, as text.
//!
//! Only tests, fuzzers and the fault campaign use this crate. The switch, the library and the command do not.

pub mod model;
pub mod transcript;
