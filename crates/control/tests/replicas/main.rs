//! The controller of replicas and the keepers beside operators, together.

mod faults;
mod one_by_one;
mod world;
