//! What runs beside an operator of the replicas program, and its controller: `docs/internals/replicas-processes.md`.
//!
//! | file | thread | what |
//! |---|---|---|
//! | `selector` | `mf-selector` | chooses a server for each request |
//! | `keeper` | `mf-keeper` | takes a controller's orders for the operator |
//! | `parts` | `mf-keeper` | what these orders change: the switch, and whoever selects |
//! | `controller` | `mf-controller` | the controller of all operators |

mod controller;
mod keeper;
mod parts;
mod selector;

pub use controller::{ControllerOptions, ControllerProcess, ControllerReport, StreamsReport};
pub use keeper::{BoundKeeper, Keeper, KeeperOptions, KeeperReport, StreamCounters};
pub use parts::SelectedBy;
pub use selector::{BoundSelector, Selector, SelectorOptions, SelectorReport};
