//! The schedulers that Midflight is compared with, as state machines without I/O, in the shape of
//! [`midflight_endpoint::Endpoint`]. `sim` and `host` drive them as they drive Midflight's own: what is compared is protocols.
//!
//! [`sparrow`]: batch sampling with late binding. The polling of Bolt-Server is simulated only (`lab/papers`, `schemes/bolt.rs`).

pub mod sparrow;
