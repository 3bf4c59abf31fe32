//! The controller of a cache and the keepers of operators, together.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod failures;
mod found_by_model;
mod keeper;
mod networks;
mod plans;
mod world;
