//! Frames through XDP and TC: what they accept, leave alone, answer and send, byte for byte. An independent library
//! writes and reads the frames. Also the programs on interfaces: attached, found, pinned, taken over. Needs root, a
//! kernel with BPF arenas, and for interfaces iproute2; prints SKIPPED without them.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "tests may")]

mod answers;
mod attach;
mod capture;
mod cookies;
mod corpora;
mod datagrams;
mod engine;
mod frame;
mod left_alone;
mod next_hops;
mod shells;
mod stage;
mod stand_in;
mod store;
mod stories;
mod tc;
mod verifier;
mod wire;
