//! The durable log of a replica.
