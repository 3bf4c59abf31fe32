//! The endpoints of the replicas program, as state machines without I/O. So far its selectors: which replica answers a read soonest.

pub mod select;
