//! The tasks program within the switch's laws: the cluster's one task queue, in registers.

#[cfg(feature = "check")]
pub mod check;
pub mod published;
pub mod safe;
