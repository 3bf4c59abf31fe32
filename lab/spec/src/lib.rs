//! What all engines of a program are tested against: a reference model in plain Rust, and transcripts that every engine
//! must answer in the same way.
//!
//! - [`model`] computes what the protocol demands for each packet. It also turns fuzzing input into random traffic, and
//!   compares an engine with the model on it;
//! - [`reads`] has the protocol of linearizable reads as a model that is searched exhaustively;
//! - [`replicas`] has what an operator of NetRS must do with each packet, and what controllers and operators say to each other as a
//!   model that is searched exhaustively;
//! - [`transcript`] runs the text files in `transcripts/`: packets in, packets out.
//!
//! Only tests, fuzzers, the fault campaign and `midflight-lab check` use this crate. The switch and the library do not.

pub mod model;
pub mod reads;
pub mod replicas;
pub mod transcript;
