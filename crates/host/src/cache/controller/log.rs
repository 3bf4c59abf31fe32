//! The log messages of a controller.

use crate::cache::log_limit::LogLimit;
use midflight_cache::control::controller::Failure;
use midflight_cache::control::{Event, Network, Order};
use midflight_endpoint::Nanos;
use midflight_placement::failure::Decision;

#[derive(Debug, Default)]
pub(super) struct Log {
    refused: LogLimit,
}

impl Log {
    /// Logs an event if it concerns users.
    pub(super) fn event(&self, now: Nanos, network: &Network, event: &Event) {
        match event {
            // An operator may cause several per second.
            Event::Refused { .. } | Event::ImpossibleTerm { .. } if !self.refused.may_log(now) => {}
            _ => log(network, event),
        }
    }
}

fn log(network: &Network, event: &Event) {
    let name = |operator: usize| network.topology().operators()[operator].id.as_str();
    match event {
        Event::Refused { operator, term } => tracing::warn!(
            "operator {} refuses this controller: it follows term {} of a controller {:#x}, and takes no older one, nor one that is far \
             beyond; if no such controller runs, start the operator again",
            name(*operator),
            term.number,
            term.controller
        ),
        Event::ImpossibleTerm { operator, term } => tracing::warn!(
            "operator {} says that it follows term {}, which cannot be: it counts as dead; start it again",
            name(*operator),
            term.number
        ),
        Event::TakesOver(term) => tracing::info!("takes over, in term {}", term.number),
        Event::IsActive(term) => tracing::info!("is active, in term {}", term.number),
        Event::SteppedDown(term) => {
            tracing::info!("another controller is active, in term {}: is a standby", term.number)
        }
        Event::OperatorFailed { operator, why, groups } => {
            tracing::warn!("operator {} {}: {groups} traffic groups lose their RSNode", name(*operator), reason(*why));
        }
        Event::OperatorBack(operator) => tracing::info!("operator {} works again", name(*operator)),
        Event::PlanDecided(Decision::Take) => tracing::info!("a new plan is taken"),
        Event::PlanDecided(Decision::Keep) => tracing::debug!("the new plan is not worth its moves"),
        Event::Deployed => tracing::info!("the plan is deployed"),
        Event::Overloaded { accelerator, groups } => tracing::warn!(
            "accelerator {} gets more than it is planned for: {groups} traffic groups are degraded until the next plan",
            network.topology().accelerators()[*accelerator].id
        ),
        Event::OrderRefused { operator, order, .. } if matches!(**order, Order::ReplicaGroup { .. }) => tracing::warn!(
            "the selector of operator {} does not take {order:?}: it knows other servers under this id (raise keyspace.version whenever \
             servers change), or has no room (cache.selector.servers, replica_groups)",
            name(*operator)
        ),
        Event::OrderRefused { operator, order, outcome } => tracing::warn!(
            "operator {} did not carry out {order:?} ({outcome:?}): compare its bounds with this configuration",
            name(*operator)
        ),
        Event::NoFreeId => tracing::warn!("no RSNode id is free: raise bounds.rsnodes here and at the operators"),
        // For the driver only.
        Event::PlanWanted(_) => {}
    }
}

fn reason(why: Failure) -> &'static str {
    match why {
        Failure::Silent => "does not answer",
        Failure::Restarted => "was started again",
        Failure::NoSelector => "has no selector",
        Failure::Refuses => "is refused as an RSNode by another operator",
        Failure::RefusesOthers => "refuses to know RSNodes (compare its bounds with this configuration)",
        Failure::Stuck => "carries out no orders",
    }
}
