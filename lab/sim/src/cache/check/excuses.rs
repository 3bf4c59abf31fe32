//! Which faults excuse what: the rules promise nothing to a party that is cut off, but much to all others.

use super::trial::{Fault, FaultKind, Party, Trial};
use crate::check::Common;

impl Trial {
    /// Whether no read may fail: no client is cut off from all replicas of a group for a whole read, and the network
    /// loses little.
    pub(super) fn lets_no_read_fail(&self) -> bool {
        self.network.loss <= 0.02 && self.faults.iter().all(|fault| self.is_survived(&fault.what))
    }

    /// A fault that the network must survive, by another RSNode or a backup.
    fn is_survived(&self, what: &FaultKind) -> bool {
        match what {
            FaultKind::Plan(_) | FaultKind::Degraded(_) | FaultKind::NoController | FaultKind::WrongPlans => true,
            FaultKind::Absurd(_) | FaultKind::Lies(_) | FaultKind::Answered(_) => true,
            FaultKind::Slow { .. } | FaultKind::Silent(_) => false,
            FaultKind::Common(common) => match common {
                // A rack depends on its operator, as on a switch.
                Common::Crash(Party::Operator(place)) => *place >= self.racks && !self.has_no_controller(),
                Common::Crash(Party::Controller(_)) => true,
                Common::Crash(Party::Selector(_)) => !self.has_no_controller(),
                // A client whose clock jumps ends its reads early.
                Common::Drift { party: Party::Client(_), ahead_ms, .. } => *ahead_ms < 1_000,
                Common::Drift { .. } => true,
                Common::Crash(_) | Common::Pause(_) | Common::Partition { .. } | Common::Burst(_) => false,
                Common::Garbage(_) | Common::Forged(_) | Common::Replayed(_) | Common::Guessed(_) => true,
            },
        }
    }

    fn has_no_controller(&self) -> bool {
        let ends = |fault: &Fault| {
            matches!(fault.what, FaultKind::NoController | FaultKind::Common(Common::Crash(Party::Controller(_))))
        };
        self.faults.iter().any(ends)
    }

    /// Whether nothing is lost: only a plan changes under load. (Clocks may drift; a jump would end waits early.)
    pub(super) fn loses_nothing(&self) -> bool {
        self.controllers == 0
            && self.network.loss == 0.0
            && self.network.duplication == 0.0
            && self.faults.iter().all(|fault| {
                matches!(fault.what, FaultKind::Plan(_) | FaultKind::Degraded(_) | FaultKind::NoController)
            })
    }

    /// Whether operators have no reason to drop anything: all have their rules from the start, and there are no forged
    /// packets.
    pub(super) fn drops_nothing(&self) -> bool {
        let drops =
            |what: &FaultKind| what.is_attack() || matches!(what, FaultKind::Common(Common::Crash(Party::Operator(_))));
        self.controllers == 0 && !self.faults.iter().any(|fault| drops(&fault.what))
    }

    pub(super) fn has_copies(&self) -> bool {
        let copies = |what: &FaultKind| {
            matches!(what, FaultKind::Common(Common::Burst(_) | Common::Replayed(_) | Common::Forged(_)))
        };
        self.network.duplication > 0.0 || self.faults.iter().any(|fault| copies(&fault.what))
    }
}
