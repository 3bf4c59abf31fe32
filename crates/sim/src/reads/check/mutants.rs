//! The bugs that the campaign must find. `docs/internals/mutants.md` says what each does. Numbers below 120 are in the C core, the
//! others in the replica; no number is one of another program's.

use crate::check::Mutant;

/// All of them.
pub(super) const MUTANTS: &[Mutant] = &[
    mutant(101, "old-session-closes", "dataplane/src/reads/from_replica.h", 3000),
    mutant(103, "lease-from-receipt", "dataplane/src/reads/session.h", 1500),
    mutant(104, "old-index-kept", "dataplane/src/reads/state.h", 1500),
    mutant(106, "copy-closes", "dataplane/src/reads/from_replica.h", 3000),
    mutant(121, "fence-without-drift", "crates/reads/src/replica/config.rs", 1500),
    mutant(122, "doubts-not-awaited", "crates/reads/src/replica/session.rs", 1500),
    mutant(123, "heartbeat-without-lease", "crates/reads/src/replica/session.rs", 1500),
    mutant(125, "votes-inside-promise", "crates/reads/src/replica/node.rs", 1500),
    mutant(129, "old-session-writes", "crates/reads/src/replica/mod.rs", 3000),
    mutant(130, "one-sid-twice", "crates/reads/src/replica/session.rs", 1500),
    mutant(131, "restart-unnoticed", "crates/reads/src/replica/session.rs", 1500),
    mutant(141, "reordered-ignored", "crates/reads/src/replica/writes.rs", 1500),
    mutant(142, "repeat-runs-again", "crates/reads/src/replica/clients.rs", 1500),
    mutant(143, "repeat-leaves-open", "crates/reads/src/replica/writes.rs", 1500),
    mutant(144, "repeat-closes-low", "crates/reads/src/replica/writes.rs", 1500),
    mutant(145, "refresh-closes-low", "crates/reads/src/replica/writes.rs", 3000),
    mutant(146, "never-refreshed", "crates/reads/src/replica/writes.rs", 1500),
    mutant(151, "wiped-and-trusted", "crates/reads/src/replica/reads.rs", 1500),
    mutant(152, "commits-whole-log", "crates/reads/src/replica/mod.rs", 1500),
    mutant(153, "read-before-applied", "crates/reads/src/replica/mod.rs", 1500),
    mutant(161, "unsynced-acknowledged", "crates/reads/src/replica/node.rs", 1500),
    mutant(162, "two-clients-in-snapshot", "crates/reads/src/replica/state.rs", 1500),
    mutant(163, "own-time-expires", "crates/reads/src/replica/drive.rs", 1500),
    mutant(164, "lost-snapshot-unnoticed", "crates/reads/src/replica/node.rs", 1500),
    mutant(165, "stranger-refused", "crates/reads/src/replica/mod.rs", 1500),
];

const fn mutant(number: u32, name: &'static str, place: &'static str, budget: u64) -> Mutant {
    Mutant { number, name, place, budget }
}
