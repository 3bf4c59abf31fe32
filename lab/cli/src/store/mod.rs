//! Measures and checks a store.

pub(crate) mod cluster;
mod disks;
pub(crate) mod faults;
pub(crate) mod load;
mod slow_sync;
mod worker;
