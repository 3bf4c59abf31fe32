//! The bugs that the campaign must find. `docs/internals/mutants.md` says what each does. Numbers to 20, 46, 47 and from 90 on are in
//! the C core, from 21 to 41 and 43, 49 and 97 in the endpoints, the others in their drivers.

use super::rules::*;
use crate::check::{Mutant, Rule};

/// Rules that a bug must break before all others: else nobody knows whether the campaign would see them broken.
pub(super) const FIRST: &[Rule] =
    &[T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14, T15, T16, T17, T18, T19];

/// All of them.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new(1, "last-page", "dataplane/src/tasks/pools.h", 1000),
    Mutant::new(2, "requeue-behind", "dataplane/src/tasks/assign.h", 1000),
    Mutant::new(3, "missed-word", "dataplane/src/tasks/parking.h", 1000),
    Mutant::new(4, "constant-lease", "dataplane/src/tasks/give_up.h", 1000),
    Mutant::new(5, "ignored-resource", "dataplane/src/tasks_setup.c", 1000),
    Mutant::new(6, "first-page-dropped", "dataplane/src/tasks/give_up.h", 1000),
    Mutant::new(7, "constant-idle", "dataplane/src/tasks/from_client.h", 1000),
    Mutant::new(8, "lost-tail", "dataplane/src/tasks/queue.h", 1000),
    Mutant::new(9, "share-kept", "dataplane/src/tasks/slots.h", 1000),
    Mutant::new(10, "unnoticed-gap", "dataplane/src/tasks/give_up.h", 1000),
    Mutant::new(11, "repeat-renews", "dataplane/src/tasks/retrieve.h", 2000),
    Mutant::new(12, "first-group-first", "dataplane/src/tasks/queue.h", 1000),
    Mutant::new(13, "uncounted-slots", "dataplane/src/tasks/slots.h", 1000),
    Mutant::new(14, "last-level-first", "dataplane/src/tasks/queue.h", 1000),
    Mutant::new(15, "old-cookie", "dataplane/src/tasks/cookie.h", 1000),
    Mutant::new(16, "half-a-bitmap-stored", "dataplane/src/tasks/from_client.h", 1000),
    Mutant::new(17, "trailing-ignored", "dataplane/src/shared/answer.h", 1000),
    Mutant::new(18, "one-parked-unforeseen", "dataplane/src/tasks.c", 1000),
    Mutant::new(19, "eight-slots-uncounted", "dataplane/src/tasks/slots.h", 1000),
    Mutant::new(20, "tried-ahead-again", "dataplane/src/tasks/retrieve.h", 1000),
    Mutant::new(21, "drain-falls-silent", "crates/tasks/src/executor/mod.rs", 1000),
    Mutant::new(22, "eight-kept-alive", "crates/tasks/src/executor/slots/transmit.rs", 1000),
    Mutant::new(23, "epochs-in-order", "crates/tasks/src/executor/answers.rs", 1000),
    Mutant::new(24, "busy-uncounted", "crates/tasks/src/executor/mod.rs", 1000),
    Mutant::new(25, "keepalive-postponed", "crates/tasks/src/executor/answers.rs", 1000),
    Mutant::new(26, "large-reset-unasked", "crates/tasks/src/executor/link.rs", 1000),
    Mutant::new(27, "packet-beyond-bound", "crates/wire/src/builder.rs", 1000),
    Mutant::new(28, "one-worker-too-many", "crates/tasks/src/executor/slots.rs", 1000),
    Mutant::new(29, "done-told-as-return", "crates/tasks/src/executor/slots/ahead.rs", 1000),
    Mutant::new(30, "given-back-and-kept", "crates/tasks/src/executor/slots/ahead.rs", 1000),
    Mutant::new(31, "half-a-bitmap-taken", "crates/tasks/src/client/answers.rs", 1000),
    Mutant::new(32, "half-a-bitmap-cancelled", "crates/tasks/src/client/answers.rs", 1000),
    Mutant::new(33, "half-a-bitmap-open", "crates/tasks/src/client/answers.rs", 1000),
    Mutant::new(34, "large-question-uncounted", "crates/tasks/src/client/probe.rs", 1000),
    Mutant::new(35, "many-stops-unrepeated", "crates/tasks/src/client/stopping.rs", 1000),
    Mutant::new(36, "eight-slots-stopped", "crates/tasks/src/executor/answers.rs", 1000),
    Mutant::new(37, "half-of-holders-read", "crates/tasks/src/client/answers.rs", 1000),
    Mutant::new(38, "any-attempt-cancelled", "crates/tasks/src/client/completions.rs", 1000),
    Mutant::new(39, "bundle-freed-when-void", "crates/tasks/src/executor/slots.rs", 1000),
    Mutant::new(40, "bundle-lost-when-taken-back", "crates/tasks/src/executor/slots/bundles.rs", 1000),
    Mutant::new(41, "one-bundle-kept", "crates/tasks/src/executor/slots/bundles.rs", 1000),
    Mutant::new(42, "switch-keeps-epoch", "lab/sim/src/tasks/nodes.rs", 1000),
    Mutant::new(43, "last-one-goes-on", "crates/tasks/src/executor/slots.rs", 1000),
    Mutant::new(44, "another-slots-result", "lab/sim/src/tasks/executor.rs", 1000),
    Mutant::new(45, "tick-by-the-second", "lab/sim/src/tasks/switch.rs", 1000),
    Mutant::new(46, "cancelled-queued-again", "dataplane/src/tasks/assign.h", 1000),
    Mutant::new(47, "sixteen-holders-named", "dataplane/src/tasks/from_client.h", 1000),
    Mutant::new(48, "another-slot-stopped", "lab/sim/src/tasks/executor.rs", 1000),
    Mutant::new(49, "waits-beyond-its-end", "crates/tasks/src/executor/slots.rs", 1000),
    Mutant::new(90, "second-place-forgotten", "dataplane/src/tasks/wishes.h", 1000),
    Mutant::new(91, "long-patience-cut", "dataplane/src/tasks/wishes.h", 1000),
    Mutant::new(92, "age-at-place-ignored", "dataplane/src/tasks/wishes.h", 1000),
    Mutant::new(93, "empty-place-kept", "dataplane/src/tasks/places.h", 1000),
    Mutant::new(94, "busy-client-not-given-up", "dataplane/src/tasks/give_up.h", 1000),
    Mutant::new(95, "two-runs-stopped", "dataplane/src/tasks/from_executor.h", 1000),
    Mutant::new(97, "part-is-result", "crates/tasks/src/client/completions.rs", 1000),
];
