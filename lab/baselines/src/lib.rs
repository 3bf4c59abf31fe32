//! Baseline schedulers, as state machines without I/O in the shape of [`midflight_endpoint::Endpoint`]. `sim` and `host` drive them like
//! Midflight's own, so a comparison is of protocols only.
//!
//! [`sparrow`]: batch sampling with late binding. Bolt-Server's polling is simulated only (`lab/papers`, `schemes/bolt.rs`).

pub mod sparrow;
