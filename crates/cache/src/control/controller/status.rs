//! The status of a controller.

use super::Controller;
use super::channel::State;
use super::event::ControllerCounters;
use super::ids::Use;
use midflight_endpoint::Nanos;
use midflight_wire::cache::control::Term;

/// The role of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It listens.
    #[default]
    Standby,
    /// It learns the rules in force, with this term.
    Claiming(Term),
    /// It gives orders, with this term.
    Active(Term),
}

impl Role {
    /// Its term; a standby has none.
    #[must_use]
    pub fn term(self) -> Option<Term> {
        match self {
            Self::Standby => None,
            Self::Claiming(term) | Self::Active(term) => Some(term),
        }
    }
}

/// An operator, as its controller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorStatus {
    /// It answers.
    pub is_alive: bool,
    /// Its rules of the plan are known.
    pub is_known: bool,
    /// It has all rules that it should have.
    pub is_up_to_date: bool,
    /// It is in no plan.
    pub is_barred: bool,
    /// Orders that it has refused, and should carry out.
    pub refused: usize,
    /// Time since its last message; `None`: it has sent none.
    pub heard: Option<Nanos>,
    /// Packets per second of its selector, as last reported.
    pub load_per_s: u64,
}

/// A controller at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its role.
    pub role: Role,
    /// By operator.
    pub operators: Vec<OperatorStatus>,
    /// By traffic group: the RSNode id of its label, as far as is known.
    pub labels: Vec<Option<u16>>,
    /// By traffic group: the operator that should select for it.
    pub target: Vec<Option<usize>>,
    /// RSNode ids with their operators.
    pub ids: Vec<(u16, Option<usize>, Use)>,
    /// By traffic group: requests per second, as far as is known.
    pub requests_per_s: Vec<u64>,
    /// Whether all labels are those of the plan.
    pub is_deployed: bool,
    /// Of a standby: time since an operator heard of an active controller; `None`: none has.
    pub other_heard: Option<Nanos>,
    /// Counters of messages, plans and statistics.
    pub counters: ControllerCounters,
}

impl Controller {
    /// Its role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> Status {
        let since = |then: Nanos| self.now.saturating_sub(then);
        let operators = self.channels.iter().zip(&self.traffic.loads).map(|(channel, load)| OperatorStatus {
            is_alive: !channel.is_dead,
            is_known: channel.state != State::Unknown,
            is_up_to_date: channel.is_up_to_date(),
            is_barred: channel.is_barred(self.now, self.config.barred_for),
            refused: channel.refused.len(),
            heard: channel.incarnation.map(|_| since(channel.heard)),
            load_per_s: *load as u64,
        });
        let others = self.channels.iter().filter_map(|channel| channel.controller_heard);
        let other_heard = others.max().filter(|_| self.role == Role::Standby).map(since);
        let ids = self.ids.iter().map(|(id, node)| (id, node.operator, node.used));
        Status {
            role: self.role,
            operators: operators.collect(),
            labels: self.labels.iter().map(|label| label.in_force.flatten()).collect(),
            target: self.target.clone(),
            ids: ids.collect(),
            requests_per_s: (0..self.labels.len()).map(|group| self.traffic.rate(group) as u64).collect(),
            is_deployed: self.is_deployed,
            other_heard,
            counters: self.counters,
        }
    }
}
