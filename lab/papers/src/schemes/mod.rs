//! The baseline schedulers, as they run in a cell.

pub(crate) mod bolt;
pub(crate) mod spark;
pub(crate) mod sparrow;
