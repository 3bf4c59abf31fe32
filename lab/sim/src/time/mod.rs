//! Virtual time: the event queue and the clocks of nodes.

mod calendar;
mod clock;
mod heap;

pub use calendar::Calendar;
pub use clock::Clock;
pub(crate) use clock::PPM_MAX;
pub use heap::Heap;
