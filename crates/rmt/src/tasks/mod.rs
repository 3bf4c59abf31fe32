//! The tasks program under the switch's laws: the cluster's one task queue, in registers.

pub mod published;
pub mod safe;
