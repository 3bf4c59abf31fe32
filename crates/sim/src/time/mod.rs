//! Virtual time: the heap of events, and the clocks of nodes.

mod clock;
mod heap;

pub use clock::Clock;
pub use heap::Heap;
