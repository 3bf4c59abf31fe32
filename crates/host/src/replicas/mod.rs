//! What runs beside an operator of the replicas program, and its controller: `docs/internals/replicas-processes.md`.
//!
//! | file | thread | what |
//! |---|---|---|
//! | `selector` | `mf-selector` | chooses a server for each request |
//! | `keeper` | `mf-keeper` | takes a controller's orders for the operator |
//! | `parts` | `mf-keeper` | what these orders change: the switch, and whoever selects |
//! | `controller` | `mf-controller` | the controller of all operators |
//! | `stream` | both | how a stream between the two begins |

mod controller;
mod keeper;
mod parts;
mod selector;
mod stream;

pub use controller::{ControllerOptions, ControllerProcess, ControllerReport, StreamsReport};
pub use keeper::{BoundKeeper, Keeper, KeeperOptions, KeeperReport, StreamCounters};
pub use parts::SelectedBy;
pub use selector::{BoundSelector, Selector, SelectorOptions, SelectorReport};

use midflight_endpoint::{Nanos, SECOND};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Minimum interval between log lines of one kind, so that a peer cannot fill the log.
const LOG_EVERY: Nanos = 60 * SECOND;

/// Limits the rate of log lines of one kind.
#[derive(Debug, Default)]
struct LogLimit(AtomicU64);

impl LogLimit {
    fn may_log(&self, now: Nanos) -> bool {
        let next = |next: Nanos| (now >= next).then(|| now.saturating_add(LOG_EVERY));
        self.0.fetch_update(Relaxed, Relaxed, next).is_ok()
    }
}
