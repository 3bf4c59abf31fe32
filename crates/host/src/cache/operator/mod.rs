//! The threads of an operator of the cache program, and its controller: see `docs/internals/cache-processes.md`.
//!
//! | file | thread | subject |
//! | |---|---|---|
//! | `selector` | `mf-selector` | chooses a server for each request |
//! | `keeper` | `mf-keeper` | takes a controller's orders for the operator |
//! | `parts` | `mf-keeper` | what the orders change: switch and selection |
//! | `controller` | `mf-controller` | the controller of all operators |
//! | `stream` | both | the handshake of their streams |
//! | `secret` | both | the secret that they share, and the streams that it seals |

mod controller;
mod keeper;
mod parts;
pub mod secret;
mod selector;
mod stream;

pub use controller::{ControllerOptions, ControllerProcess, ControllerReport, StreamsReport};
pub use keeper::{BoundKeeper, Keeper, KeeperOptions, KeeperReport, StreamCounters};
pub use parts::SelectedBy;
pub use secret::Secret;
pub use selector::{BoundSelector, Selector, SelectorOptions, SelectorReport};

use midflight_endpoint::{Nanos, SECOND};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Minimum interval between log lines of one kind, so that a peer cannot fill the log.
const LOG_EVERY: Nanos = 60 * SECOND;

#[derive(Debug, Default)]
struct LogLimit(AtomicU64);

impl LogLimit {
    fn may_log(&self, now: Nanos) -> bool {
        let next = |next: Nanos| (now >= next).then(|| now.saturating_add(LOG_EVERY));
        self.0.fetch_update(Relaxed, Relaxed, next).is_ok()
    }
}
