//! Frames through the shells: what XDP and TC take, leave alone, answer and send, byte for byte. The frames are written and
//! read by a library that knows nothing of Midflight. Needs root and a kernel with BPF arenas, and where frames leave by
//! interfaces, iproute2; skips loudly without.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "tests may")]

mod answers;
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
mod stories;
mod tc;
mod wire;
