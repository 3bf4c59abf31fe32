//! What runs on the nodes of a simulated cluster.

pub(crate) mod spark;
