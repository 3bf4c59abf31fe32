//! The controller: it compares the rules in force at each operator with the wanted ones, and sends the difference.
//!
//! | where | what |
//! |---|---|
//! | `channel` | the state of one operator: whether it is alive, which rules it lacks |
//! | `orders` | sends the rules that an operator lacks, and takes its answers |
//! | `ids` | RSNode ids: prepared, serving, retired, quarantined before reuse |
//! | `claim` | standby, takeover, learning the state from operators |
//! | `questions` | when questions were asked; for how long operators have been silent |
//! | `failure` | dead operators, and the consequences |
//! | `deploy` | from the labels in force to those of the plan |
//! | `statistics` | counts to rates; overloaded accelerators |
//! | `plans` | requests for plans, and decisions about them |
//!
//! A driver calls `handle` for each message that arrived, and `handle_timeout` if it is due; then `poll_event` and `poll_transmit` until
//! `None`; then sleeps until `poll_timeout`. It may drop messages to an operator that is out of reach: they are repeated.

mod channel;
mod claim;
mod config;
mod deploy;
mod event;
mod failure;
mod ids;
mod orders;
mod plans;
mod questions;
mod statistics;
mod status;

pub use config::{ControllerConfig, Start};
pub use event::{ControllerCounters, Event, Failure, PlanRefused, PlanWanted};
pub use ids::Use;
pub use status::{OperatorStatus, Role, Status};

use super::TERM_LEAP;
use super::network::Network;
use channel::{Channel, State};
use ids::Ids;
use midflight_endpoint::Nanos;
use midflight_wire::cache::control::{Ask, ControlMessage, Refusal, Term};
use plans::Asked;
use questions::{Question, Questions};
use statistics::Traffic;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Label {
    /// What its operator is known to have; `None`: unknown.
    in_force: Option<Option<u16>>,
    wanted: Option<u16>,
}

/// A controller, active or standby.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
    network: Arc<Network>,
    /// A random number of this process.
    me: u64,
    now: Nanos,
    next_tick: Nanos,
    questions: Questions,
    role: Role,
    highest: Term,
    quiet_since: Option<Nanos>,
    claimed: Nanos,
    /// The last question before that.
    claimed_after: Question,
    /// When an operator last reported rules from another controller.
    learned_at: Nanos,
    /// Whether any operator had an RSNode id from another controller.
    were_ids_used: bool,
    channels: Vec<Channel>,
    ids: Ids,
    labels: Vec<Label>,
    /// By traffic group: the operator that should select for it.
    target: Vec<Option<usize>>,
    flipping: Option<usize>,
    is_deployed: bool,
    is_out_of_ids: bool,
    selectors: usize,
    traffic: Traffic,
    asked: Option<Asked>,
    plans: u64,
    next_plan: Nanos,
    out: VecDeque<(usize, ControlMessage)>,
    events: VecDeque<Event>,
    counters: ControllerCounters,
}

impl Controller {
    /// A standby, which takes over if no other controller is active. `me`: a random number of this process.
    #[must_use]
    pub fn new(now: Nanos, config: ControllerConfig, network: Arc<Network>, me: u64) -> Self {
        let operators = network.operators();
        let groups = network.groups().len();
        let tiers = network.topology().tiers();
        let channels = (0..operators).map(|operator| Channel::new(now, network.selector(operator).is_some())).collect();
        Self {
            ids: Ids::new(config.rsnodes),
            traffic: Traffic::new(operators, groups, tiers),
            labels: vec![Label::default(); groups],
            target: vec![None; groups],
            me,
            now,
            next_tick: now,
            questions: Questions::new(now, &config),
            role: Role::Standby,
            highest: Term::NONE,
            quiet_since: None,
            claimed: now,
            learned_at: now,
            were_ids_used: false,
            claimed_after: Question::default(),
            channels,
            flipping: None,
            is_deployed: true,
            is_out_of_ids: false,
            selectors: 0,
            asked: None,
            plans: 0,
            next_plan: now,
            out: VecDeque::new(),
            events: VecDeque::new(),
            counters: ControllerCounters::default(),
            config,
            network,
        }
    }

    /// The next message, and the operator that it is for.
    pub fn poll_transmit(&mut self) -> Option<(usize, ControlMessage)> {
        self.out.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When `handle_timeout` must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Nanos {
        self.next_tick
    }

    /// Acts on the time.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        if self.now < self.next_tick {
            return;
        }
        self.next_tick = self.now.saturating_add(self.config.ask_every);
        self.ask_all();
        match self.role {
            Role::Standby => self.consider_takeover(),
            Role::Claiming(_) => self.try_to_settle(),
            Role::Active(_) => {
                self.find_the_dead();
                self.forget_the_unreachable();
                self.retry_refused();
                self.begin_again();
                self.ask_for_plan();
                self.step();
            }
        }
        self.send_all();
    }

    fn ask_all(&mut self) {
        let number = self.questions.ask(self.now);
        let term = self.role.term();
        for (operator, channel) in self.channels.iter().enumerate() {
            let is_wanted = term.is_some() && channel.state == State::Unknown;
            let inventory = is_wanted.then_some(channel.number.loading);
            self.out.push_back((operator, ControlMessage::Ask(Ask { number, term, inventory })));
        }
    }

    /// Takes a message of an operator.
    pub fn handle(&mut self, now: Nanos, operator: usize, message: &ControlMessage) {
        self.now = self.now.max(now);
        let term = match message {
            ControlMessage::Report(report) => report.term,
            ControlMessage::Inventory(inventory) => inventory.term,
            ControlMessage::Done(done) => done.term,
            ControlMessage::Refused(refused) => refused.term,
            ControlMessage::Ask(_) | ControlMessage::Set(_) => {
                self.counters.foreign += 1;
                return;
            }
        };
        if operator >= self.channels.len() {
            self.counters.foreign += 1;
            return;
        }
        self.channels[operator].term = term;
        if term.number > self.plausible_term() {
            self.counters.impossible_terms += 1;
            return self.event(Event::ImpossibleTerm { operator, term });
        }
        self.highest = self.highest.max(term);
        if self.role.term().is_some_and(|mine| term > mine) {
            return self.step_down(term);
        }
        match message {
            ControlMessage::Report(report) => self.report(operator, report),
            ControlMessage::Inventory(inventory) => self.inventory(operator, inventory),
            ControlMessage::Done(done) => self.done(operator, done),
            ControlMessage::Refused(refused) => {
                self.counters.refused += 1;
                if refused.why == Refusal::OlderTerm {
                    self.event(Event::Refused { operator, term });
                }
                if self.role.term() == Some(refused.term) && refused.why != Refusal::OlderTerm {
                    self.refused(operator, refused);
                }
            }
            ControlMessage::Ask(_) | ControlMessage::Set(_) => {}
        }
        self.send_all();
    }

    /// The highest plausible term. Terms count takeovers, so a number far beyond those of this controller and most operators is wrong, and
    /// obeying it would exhaust the terms.
    fn plausible_term(&self) -> u64 {
        let mut numbers: Vec<u64> = self.channels.iter().map(|channel| channel.term.number).collect();
        let (_, median, _) = numbers.select_nth_unstable((self.channels.len() - 1) / 2);
        self.highest.number.max(*median).saturating_add(TERM_LEAP)
    }

    fn event(&mut self, event: Event) {
        self.events.push_back(event);
    }
}
