//! The simulated world of Midflight, and the workloads that it and `midflight replay` play.

pub mod workload;
