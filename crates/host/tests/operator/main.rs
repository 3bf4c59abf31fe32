//! Operators, selectors, keepers and controllers as in production, over loopback.

mod deployment;
mod streams;
mod world;
