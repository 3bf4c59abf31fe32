//! What measures and checks a store.
//!
//! | file | subject |
//! |---|---|
//! | `load` | `midflight-lab load store`: clients, each of which waits for its answers, and the history of what they did and saw |
//! | `worker` | one such client |
//! | `cluster`, `disks`, `slow_sync` | a store as processes, on loopback or in a lab; full and slow disks |
//! | `faults` | `midflight-lab faults`: what clients see while its parts fail |

pub(crate) mod cluster;
mod disks;
pub(crate) mod faults;
pub(crate) mod load;
mod slow_sync;
mod worker;
