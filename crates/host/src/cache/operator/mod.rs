//! The threads of an operator of the cache program: see `docs/internals/cache-processes.md`.
//!
//! | file | thread | subject |
//! |---|---|---|
//! | `selector` | `mf-selector` | chooses a server for each request |
//! | `keeper` | `mf-keeper` | takes a controller's orders for the operator |
//! | `parts` | `mf-keeper` | what the orders change: switch and selection |

mod keeper;
mod parts;
mod selector;

pub use keeper::{BoundKeeper, Keeper, KeeperOptions, KeeperReport, StreamCounters};
pub use parts::SelectedBy;
pub use selector::{BoundSelector, Selector, SelectorOptions, SelectorReport};
