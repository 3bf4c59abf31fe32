//! Operators, selectors, keepers and controllers as in production, over loopback.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod deployment;
mod ends;
mod lies;
mod streams;
mod world;
