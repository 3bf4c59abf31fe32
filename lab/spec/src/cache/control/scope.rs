//! What each search covers: operators, initial deployment, faults, planted error.

use super::planted::Planted;
use super::state::Budget;

/// Events that a search must reach at least once, a bit each.
pub(super) mod seen {
    pub(in super::super) const DEPLOYED: u8 = 1;
    pub(in super::super) const TAKEN_OVER: u8 = 2;
    pub(in super::super) const USED_AGAIN: u8 = 4;
    pub(in super::super) const BOTH_ACTIVE: u8 = 8;
    pub(in super::super) const CREDITED: u8 = 16;
    pub(in super::super) const BACKUP: u8 = 32;
    pub(in super::super) const ALL: [(u8, &str); 6] = [
        (DEPLOYED, "a plan is deployed"),
        (TAKEN_OVER, "a controller takes over"),
        (USED_AGAIN, "an id is used again"),
        (BOTH_ACTIVE, "two controllers are active"),
        (CREDITED, "an answer reaches a selector"),
        (BACKUP, "a labelled request goes to its backup"),
    ];
}

/// A search.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Name on the command line.
    pub name: &'static str,
    /// What it covers.
    pub about: &'static str,
    /// Approximate number of states.
    pub states: u64,
    pub(super) operators: u8,
    /// The first controller is active, and its plan deployed: the second operator selects.
    pub(super) is_deployed: bool,
    /// Each SET has one order; otherwise all.
    pub(super) one_by_one: bool,
    pub(super) budget: Budget,
    /// Events that must occur in it, a bit each.
    pub(super) must_see: u8,
    /// The planted error.
    pub planted: Option<Planted>,
}

const NOTHING: Budget = Budget {
    plans: 0,
    takeovers: 0,
    suspicions: 0,
    forgets: 0,
    operator_restarts: 0,
    controller_restarts: 0,
    reopenings: 0,
    requests: 0,
};

fn scope(name: &'static str, about: &'static str, states: u64, must_see: u8, budget: Budget) -> Scope {
    Scope { name, about, states, operators: 2, is_deployed: true, one_by_one: false, budget, must_see, planted: None }
}

/// One plan after the other, with requests during deployment.
fn plans() -> Scope {
    let must_see = seen::DEPLOYED | seen::USED_AGAIN | seen::CREDITED;
    let budget = Budget { plans: 3, requests: 2, ..NOTHING };
    scope("plans", "three plans, one after the other", 50_000, must_see, budget)
}

fn plans_of_three() -> Scope {
    let budget = Budget { plans: 2, requests: 1, ..NOTHING };
    let base =
        scope("plans-of-three", "two plans for three operators", 22_000, seen::DEPLOYED | seen::CREDITED, budget);
    Scope { operators: 3, ..base }
}

fn restarts() -> Scope {
    let budget = Budget { plans: 2, requests: 1, operator_restarts: 2, ..NOTHING };
    scope("restarts", "operators start again while plans change", 354_000, seen::DEPLOYED | seen::CREDITED, budget)
}

/// An operator is suspected, rightly or not, and answers again.
fn suspicions() -> Scope {
    let budget = Budget { plans: 3, requests: 1, suspicions: 1, ..NOTHING };
    scope("suspicions", "operators are taken for dead, and answer again", 276_000, seen::DEPLOYED, budget)
}

fn one_by_one() -> Scope {
    let budget = Budget { plans: 2, reopenings: 1, ..NOTHING };
    let base = scope("one-by-one", "each order is a message of its own", 18_000, seen::DEPLOYED, budget);
    Scope { one_by_one: true, ..base }
}

fn forgotten() -> Scope {
    let budget = Budget { plans: 2, requests: 1, suspicions: 1, forgets: 1, ..NOTHING };
    scope("forgotten", "an operator out of reach is forgotten, and comes back", 126_000, seen::DEPLOYED, budget)
}

fn takeover() -> Scope {
    let must_see = seen::DEPLOYED | seen::TAKEN_OVER;
    let budget = Budget { plans: 2, takeovers: 1, requests: 1, ..NOTHING };
    scope("takeover", "a standby takes over while plans are deployed", 180_000, must_see, budget)
}

/// No controller is active at first, and both want to be.
fn both() -> Scope {
    let must_see = seen::DEPLOYED | seen::TAKEN_OVER;
    let budget = Budget { plans: 1, takeovers: 2, requests: 1, controller_restarts: 1, ..NOTHING };
    Scope {
        is_deployed: false,
        ..scope("both", "both controllers take over, one starts again", 89_000, must_see, budget)
    }
}

fn most() -> Scope {
    let must_see = seen::DEPLOYED | seen::TAKEN_OVER | seen::BOTH_ACTIVE;
    let budget = Budget { plans: 1, takeovers: 1, ..NOTHING };
    Scope {
        operators: 3,
        ..scope("most", "a standby takes over with two operators of three", 68_000, must_see, budget)
    }
}

fn most_suspicion() -> Scope {
    let budget = Budget { suspicions: 1, ..most().budget };
    let about = "the same while an operator is taken for dead";
    Scope { name: "most-suspicion", about, states: 4_397_000, budget, ..most() }
}

fn takeover_restart() -> Scope {
    let must_see = seen::DEPLOYED | seen::TAKEN_OVER;
    let budget = Budget { plans: 1, takeovers: 1, requests: 1, operator_restarts: 1, ..NOTHING };
    scope("takeover-restart", "an operator starts again while a standby takes over", 835_000, must_see, budget)
}

/// A suspicion by either controller during a takeover.
fn takeover_suspicion() -> Scope {
    let must_see = seen::DEPLOYED | seen::TAKEN_OVER;
    let budget = Budget { plans: 1, takeovers: 1, requests: 1, suspicions: 1, ..NOTHING };
    let about = "an operator is taken for dead while a standby takes over";
    scope("takeover-suspicion", about, 226_000, must_see, budget)
}

/// The scopes in which nothing may break.
#[must_use]
pub fn all() -> Vec<Scope> {
    vec![
        plans(),
        plans_of_three(),
        restarts(),
        suspicions(),
        one_by_one(),
        forgotten(),
        takeover(),
        both(),
        most(),
        most_suspicion(),
        takeover_restart(),
        takeover_suspicion(),
    ]
}

/// The scope in which this error is planted.
#[must_use]
pub fn with(planted: Planted) -> Scope {
    let base = match planted {
        Planted::LabelBeforeAllKnow
        | Planted::RemovalBeforeConfirmed
        | Planted::RemovalAtOnce
        | Planted::ReuseAtOnce
        | Planted::RulesExpire
        | Planted::AnySequence
        | Planted::TakenBackUnchecked => plans(),
        Planted::RestartKeepsSequence | Planted::IncarnationIgnored => restarts(),
        Planted::CameBackUnchecked | Planted::UnconfirmedForgotten | Planted::ReuseWithoutRest => suspicions(),
        Planted::ServeBeforeGroups | Planted::InventoryWithoutFence => one_by_one(),
        Planted::ClaimWithoutInventory => takeover(),
        Planted::OlderTermObeyed | Planted::SameNumberSameTerm => both(),
        Planted::UnheardIgnored => most_suspicion(),
        Planted::RestartedCountsEmpty
        | Planted::IdsAtOnceAfterTakeover
        | Planted::LabelNotLearned
        | Planted::WaitFromTakeover => takeover_restart(),
    };
    Scope { planted: Some(planted), ..base }
}

impl Scope {
    /// Name of the planted error, or else of the scope.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.planted.map_or(self.name, Planted::name)
    }

    pub(super) fn has(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }
}
