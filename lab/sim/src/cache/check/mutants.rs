//! The bugs that the campaign must find; `docs/internals/mutants.md` describes them. Numbers below 220 are in the C
//! core, below 240 in the selector and its host, below 260 in client and server, the others in the controller; no other
//! program uses them.

use crate::check::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new(201, "cookie-unchecked", "dataplane/src/cache/cookie.h", 1500),
    Mutant::new(202, "no-copy-for-selector", "dataplane/src/cache/response.h", 1500),
    Mutant::new(204, "cookie-lives-longer", "dataplane/src/cache/cookie.h", 1500),
    Mutant::new(205, "own-rack-uncounted", "dataplane/src/cache/response.h", 1500),
    Mutant::new(206, "no-backup-without-selector", "dataplane/src/cache/request.h", 1500),
    Mutant::new(221, "rv-alone", "crates/cache/src/rsnode/mod.rs", 1500),
    Mutant::new(222, "expired-still-outstanding", "crates/cache/src/rsnode/mod.rs", 1500),
    Mutant::new(223, "untracked-still-outstanding", "crates/cache/src/rsnode/mod.rs", 1500),
    Mutant::new(224, "unknown-group-to-anybody", "crates/cache/src/rsnode/mod.rs", 1500),
    Mutant::new(241, "first-cookie-kept", "crates/cache/src/client/answers.rs", 1500),
    Mutant::new(242, "answer-from-anybody", "crates/cache/src/client/answers.rs", 1500),
    Mutant::new(243, "late-answer-told-again", "crates/cache/src/client/answers.rs", 1500),
    Mutant::new(244, "attempts-never-expire", "crates/cache/src/client/direct.rs", 1500),
    Mutant::new(245, "turn-not-passed-on", "crates/cache/src/client/mod.rs", 1500),
    Mutant::new(251, "refusal-teaches", "crates/cache/src/server/mod.rs", 1500),
    Mutant::new(252, "request-from-anybody", "crates/cache/src/server/mod.rs", 1500),
    Mutant::new(253, "direct-without-cookie", "crates/cache/src/server/mod.rs", 1500),
    Mutant::new(254, "silent-slot-kept", "crates/cache/src/server/mod.rs", 1500),
    Mutant::new(261, "id-used-again-at-once", "crates/cache/src/control/controller/ids.rs", 1500),
    Mutant::new(262, "label-before-all-know-it", "crates/cache/src/control/controller/deploy.rs", 1500),
    Mutant::new(263, "plan-unchecked", "crates/cache/src/control/controller/plans.rs", 1500),
    Mutant::new(264, "old-rsnode-removed-at-once", "crates/cache/src/control/controller/deploy.rs", 1500),
    Mutant::new(265, "restarted-keeps-rules", "crates/cache/src/control/controller/failure.rs", 1500),
    Mutant::new(266, "silence-unnoticed", "crates/cache/src/control/controller/failure.rs", 1500),
];
