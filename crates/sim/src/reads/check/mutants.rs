//! The bugs that the campaign must find. `docs/internals/mutants.md` says what each does. Numbers below 120 are in the C core, the
//! others in the replica; no number is one of another program's.

use crate::check::Mutant;

/// All of them.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new(101, "old-session-closes", "dataplane/src/reads/from_replica.h", 1500),
    Mutant::new(103, "lease-from-receipt", "dataplane/src/reads/session.h", 1500),
    Mutant::new(104, "old-index-kept", "dataplane/src/reads/state.h", 1500),
    Mutant::new(105, "ended-session-revived", "dataplane/src/reads/session.h", 1500),
    Mutant::new(106, "copy-closes", "dataplane/src/reads/from_replica.h", 1500),
    Mutant::new(121, "fence-without-drift", "crates/reads/src/replica/config.rs", 1500),
    Mutant::new(122, "doubts-not-awaited", "crates/reads/src/replica/session.rs", 1500),
    Mutant::new(123, "heartbeat-without-lease", "crates/reads/src/replica/session.rs", 1500),
    Mutant::new(125, "votes-inside-promise", "crates/reads/src/replica/node.rs", 1500),
    Mutant::new(126, "campaigns-inside-promise", "crates/reads/src/replica/node.rs", 1500),
    Mutant::new(128, "lease-after-transfer", "crates/reads/src/replica/node.rs", 1500),
    Mutant::new(129, "old-session-writes", "crates/reads/src/replica/mod.rs", 1500),
    Mutant::new(130, "one-sid-twice", "crates/reads/src/replica/session.rs", 1500),
    Mutant::new(131, "restart-unnoticed", "crates/reads/src/replica/session.rs", 1500),
    Mutant::new(132, "incarnation-kept", "crates/sim/src/reads/nodes.rs", 1500),
    Mutant::new(141, "reordered-ignored", "crates/reads/src/replica/writes.rs", 1500),
    Mutant::new(142, "repeat-runs-again", "crates/reads/src/replica/clients.rs", 1500),
    Mutant::new(143, "repeat-leaves-open", "crates/reads/src/replica/writes.rs", 1500),
    Mutant::new(144, "repeat-closes-low", "crates/reads/src/replica/writes.rs", 1500),
    Mutant::new(146, "never-refreshed", "crates/reads/src/replica/writes.rs", 1500),
    Mutant::new(151, "wiped-and-trusted", "crates/reads/src/replica/reads.rs", 1500),
    Mutant::new(152, "commits-whole-log", "crates/reads/src/replica/mod.rs", 1500),
    Mutant::new(153, "read-before-applied", "crates/reads/src/replica/mod.rs", 1500),
    Mutant::new(171, "revoked-lease-kept", "crates/reads/src/replica/leases.rs", 1500),
    Mutant::new(172, "holders-not-awaited", "crates/reads/src/replica/leases.rs", 1500),
    Mutant::new(175, "read-index-not-awaited", "crates/reads/src/replica/read_index.rs", 1500),
    Mutant::new(161, "unsynced-acknowledged", "crates/reads/src/replica/node.rs", 1500),
    Mutant::new(162, "two-clients-in-snapshot", "crates/reads/src/replica/image.rs", 1500),
    Mutant::new(163, "own-time-expires", "crates/reads/src/replica/drive.rs", 1500),
    Mutant::new(164, "lost-snapshot-unnoticed", "crates/reads/src/replica/node.rs", 1500),
    Mutant::new(165, "stranger-refused", "crates/reads/src/replica/mod.rs", 1500),
];
