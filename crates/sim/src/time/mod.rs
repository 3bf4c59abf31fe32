//! Virtual time: the heap of events, and the clocks of nodes.

mod clock;
mod heap;

pub use clock::Clock;
pub(crate) use clock::PPM_MAX;
pub use heap::Heap;
