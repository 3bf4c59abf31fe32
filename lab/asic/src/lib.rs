//! The asic engine: the programs for a switch's pipeline, in the model of such a switch ([`midflight_rmt`]), with packets of the wire.
//!
//! | module | program |
//! |---|---|
//! | [`tasks`] | the queue of tasks |
//! | [`store`] | the store's switch |
//! | [`cache`] | the rules of an operator of the cache |

pub mod cache;
pub mod store;
pub mod tasks;

pub use tasks::{AsicConfig, AsicError, AsicTasks, Controller, Counters, Inside, Program, SlotEntry, Turn};
