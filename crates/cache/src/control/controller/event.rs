//! Events that a controller reports to its driver.

use midflight_dataplane::cache::Outcome;
use midflight_placement::failure::Decision;
use midflight_placement::{Instance, Options, Plan, solve_or_degrade};
use midflight_wire::cache::control::{Order, Term};

/// Something that the driver must know or act on.
#[derive(Clone, Debug)]
pub enum Event {
    /// It takes over: operators that hear of this term obey no older one.
    TakesOver(Term),
    /// It knows the rules in force, and acts.
    IsActive(Term),
    /// It has heard of a later term, and is a standby.
    SteppedDown(Term),
    /// An operator no longer selects (N6).
    OperatorFailed {
        /// The operator.
        operator: usize,
        /// The reason.
        why: Failure,
        /// Traffic groups that have lost their RSNode.
        groups: usize,
    },
    /// An operator works again: it answers, carries out orders, or knows the RSNodes that it refused.
    OperatorBack(usize),
    /// The driver should have this planned, and call [`super::Controller::planned`].
    PlanWanted(Box<PlanWanted>),
    /// A plan was compared with the one in force.
    PlanDecided(Decision),
    /// All labels are those of the plan.
    Deployed,
    /// An accelerator is overloaded: the groups that it selected for are degraded until the next plan.
    Overloaded {
        /// Its index in the topology.
        accelerator: usize,
        /// Traffic groups.
        groups: usize,
    },
    /// An operator refused an order, for lack of room or because of other bounds.
    OrderRefused {
        /// The operator.
        operator: usize,
        /// The order.
        order: Box<Order>,
        /// The outcome in its core; `None`: one that this version does not know.
        outcome: Option<Outcome>,
    },
    /// An operator reported an impossible term. The controller ignores the report.
    ImpossibleTerm {
        /// The operator.
        operator: usize,
        /// The term.
        term: Term,
    },
    /// An operator rejects the term of this controller.
    Refused {
        /// The operator.
        operator: usize,
        /// The term that it follows.
        term: Term,
    },
    /// All RSNode ids are in use or quarantined.
    NoFreeId,
}

/// Why an operator no longer selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It has not answered for too long.
    Silent,
    /// It was restarted, and had no rules.
    Restarted,
    /// It has no selector.
    NoSelector,
    /// An operator refused to know it as an RSNode.
    Refuses,
    /// It refused to know several RSNodes, so it has failed, not they.
    RefusesOthers,
    /// It answers questions, but has carried out no orders for too long.
    Stuck,
}

/// A request for a plan.
#[derive(Clone, Debug)]
pub struct PlanWanted {
    /// Its number, which the answer repeats.
    pub number: u64,
    /// Network, traffic, limits.
    pub instance: Instance,
}

impl PlanWanted {
    /// Plans within the time that the options allow; not on the thread that drives the controller.
    #[must_use]
    pub fn solve(&self, options: &Options) -> Plan {
        solve_or_degrade(&self.instance, options).solved.plan
    }
}

/// Why a plan was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefused {
    /// Another plan was requested since, or none.
    #[error(
        "plan {0} is not wanted: it is too late, operators have failed, or an accelerator got too much, since it was asked for"
    )]
    NotWanted(u64),
    /// It violates a constraint (N4).
    #[error("plan {number} breaks a constraint: {first}")]
    Violates {
        /// The plan's number.
        number: u64,
        /// The first violation.
        first: String,
    },
}

midflight_endpoint::counters! {
    /// Counters of messages, plans and statistics.
    pub struct ControllerCounters {
        /// Reports that were accepted.
        pub reports,
        /// Messages that came too late: after a newer one, or to an old question.
        pub stale,
        /// Messages that no operator sends, or of an unknown operator.
        pub foreign,
        /// Messages of operators that follow an impossible term: not accepted.
        pub impossible_terms,
        /// Messages that operators refused.
        pub refused,
        /// Orders that operators did not carry out; a repeated refusal is counted once.
        pub orders_refused,
        /// SETs that were sent.
        pub sets,
        /// SETs that were repeated.
        pub repeats,
        /// Operators that failed.
        pub failures,
        /// Takeovers by this controller.
        pub takeovers,
        /// Times that it heard of a later term.
        pub steps_down,
        /// Plans that were requested.
        pub plans_wanted,
        /// Plans that were taken.
        pub plans_taken,
        /// Plans that were not worth their moves.
        pub plans_kept,
        /// Plans that were refused.
        pub plans_refused,
        /// Plans that did not come in time.
        pub plans_late,
        /// Counters of operators that went backwards: not used.
        pub statistics_backwards,
        /// Absurd rates: not used.
        pub statistics_invalid,
        /// Counts of traffic groups that the operator does not label: not used.
        pub statistics_foreign,
        /// Accelerators that were overloaded.
        pub overloads,
        /// RSNodes that were wanted while no id was free.
        pub no_free_id,
    }
}
