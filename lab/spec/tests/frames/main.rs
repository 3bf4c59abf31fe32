//! Frames through the shells: what XDP and TC take, leave alone, answer and send, byte for byte. The frames are written and
//! read by a library that knows nothing of Midflight. And the shells on interfaces: attached, found, kept, taken over. Needs
//! root and a kernel with BPF arenas, and where there are interfaces, iproute2; skips loudly without.
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
mod reads;
mod shells;
mod stage;
mod stand_in;
mod stories;
mod tc;
mod verifier;
mod wire;
