//! The endpoints of the replicas program, as state machines without I/O: which replica answers a read soonest.
//!
//! - [`select`] chooses: a client may hold one of its selectors, or an operator on the path;
//! - [`rsnode`] is what runs beside such an operator.

pub mod rsnode;
pub mod select;
