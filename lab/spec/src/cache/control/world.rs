//! The model's steps: which are possible in a state, and what each does.

use super::planted::Planted;
use super::scope::{Scope, seen};
use super::state::{Broken, Controller, IDS, LABELLER, Message, Operator, REQUESTS, Request, Role, Rule, State, Term};
use std::sync::atomic::{AtomicU8, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// A message arrives, and a copy of it stays in flight.
    Deliver(Message),
    /// An operator answers an active controller.
    Hear {
        c: u8,
        operator: u8,
    },
    /// A standby takes over after it has heard from these operators, a bit each.
    TakeOver {
        c: u8,
        heard: u8,
    },
    /// A controller begins to act, though some operators have been silent for `dead_after`.
    Settle {
        c: u8,
    },
    Plan {
        c: u8,
        target: Option<u8>,
    },
    Give {
        c: u8,
        id: u8,
    },
    Pass {
        c: u8,
        id: u8,
    },
    Suspect {
        c: u8,
        operator: u8,
    },
    Forget {
        c: u8,
        operator: u8,
    },
    Reopen {
        c: u8,
        operator: u8,
    },
    RestartOperator(u8),
    RestartController(u8),
    Request,
    Arrive {
        place: u8,
    },
    /// An answer arrives at the operator of its server's rack.
    Answer {
        place: u8,
        via: u8,
    },
    /// Planted: a keeper has not heard of a controller for long.
    Expire(u8),
}

/// A state and the scope whose rules it follows.
pub(super) struct World<'a> {
    pub(super) scope: &'a Scope,
    pub(super) state: State,
    pub(super) seen: &'a AtomicU8,
}

impl World<'_> {
    pub(super) fn send(&mut self, message: Message) {
        if let Err(place) = self.state.messages.binary_search(&message) {
            self.state.messages.insert(place, message);
        }
    }

    pub(super) fn breaks(&mut self, broken: Broken) {
        if self.scope.planted.is_none_or(|planted| planted.breaks() == broken) {
            self.state.broken.get_or_insert(broken);
        }
    }

    pub(super) fn saw(&self, what: u8) {
        self.seen.fetch_or(what, Ordering::Relaxed);
    }

    pub(super) fn saw_again(&self, id: u8) {
        if self.state.used >> id & 1 == 1 {
            self.saw(seen::USED_AGAIN);
        }
    }

    pub(super) fn saw_takeover(&self) {
        self.saw(seen::TAKEN_OVER);
        if self.state.controllers.iter().all(|controller| controller.role == Role::Active) {
            self.saw(seen::BOTH_ACTIVE);
        }
    }

    pub(super) fn steps(&self, steps: &mut Vec<Step>) {
        steps.extend(self.state.messages.iter().copied().map(Step::Deliver));
        let budget = &self.state.budget;
        for c in 0..2 {
            match self.state.controllers[usize::from(c)].role {
                Role::Standby => self.standby_steps(c, steps),
                Role::Claiming => {
                    if self.opened(c.into()) >= self.majority() {
                        steps.push(Step::Settle { c });
                    }
                    steps.extend(self.operators().map(|operator| Step::Hear { c, operator }));
                }
                Role::Active => self.active_steps(c, steps),
            }
            if budget.controller_restarts > 0 {
                steps.push(Step::RestartController(c));
            }
        }
        if budget.operator_restarts > 0 {
            steps.extend(self.operators().map(Step::RestartOperator));
        }
        if self.scope.has(Planted::RulesExpire) {
            steps.extend(self.operators().map(Step::Expire));
        }
        self.request_steps(steps);
    }

    fn standby_steps(&self, c: u8, steps: &mut Vec<Step>) {
        if self.state.budget.takeovers == 0 {
            return;
        }
        let sets = 1..1_u8 << self.state.operators.len();
        let most = sets.filter(|heard| heard.count_ones() == self.majority());
        steps.extend(most.map(|heard| Step::TakeOver { c, heard }));
    }

    fn active_steps(&self, c: u8, steps: &mut Vec<Step>) {
        let (controller, budget) = (&self.state.controllers[usize::from(c)], &self.state.budget);
        for operator in self.operators() {
            let channel = &controller.channels[usize::from(operator)];
            steps.push(Step::Hear { c, operator });
            if budget.suspicions > 0 && !channel.is_dead {
                steps.push(Step::Suspect { c, operator });
            }
            if budget.forgets > 0 && channel.is_dead && !channel.is_lost {
                steps.push(Step::Forget { c, operator });
            }
            if budget.reopenings > 0 && channel.is_open {
                steps.push(Step::Reopen { c, operator });
            }
            if budget.plans > 0 && !channel.is_dead {
                steps.push(Step::Plan { c, target: Some(operator) });
            }
        }
        if budget.plans > 0 {
            steps.push(Step::Plan { c, target: None });
        }
        for id in 0..IDS as u8 {
            if self.may_give(c.into(), id) {
                steps.push(Step::Give { c, id });
            }
            if self.may_pass(c.into(), id) {
                steps.push(Step::Pass { c, id });
            }
        }
    }

    fn request_steps(&self, steps: &mut Vec<Step>) {
        let has_room = self.state.requests.iter().any(Option::is_none);
        let is_labelled = self.state.operators[usize::from(LABELLER)].label.is_some();
        if self.state.budget.requests > 0 && has_room && is_labelled {
            steps.push(Step::Request);
        }
        for place in 0..REQUESTS as u8 {
            match self.state.requests[usize::from(place)] {
                Some(Request::Selected { .. }) => {
                    steps.extend(self.operators().map(|via| Step::Answer { place, via }));
                }
                Some(_) => steps.push(Step::Arrive { place }),
                None => {}
            }
        }
    }

    /// The rules of operators change only by orders and restarts.
    pub(super) fn step(&mut self, step: Step) {
        let rules = |operator: &Operator| (operator.ids, operator.label);
        let before: Vec<_> = self.state.operators.iter().map(rules).collect();
        self.take(step);
        let is_change = matches!(step, Step::Deliver(Message::Set { .. }) | Step::RestartOperator(_));
        if !is_change && !self.state.operators.iter().map(rules).eq(before) {
            self.breaks(Broken::Alone);
        }
        if self.is_deployed() && matches!(step, Step::Deliver(Message::Done { .. })) {
            self.saw(seen::DEPLOYED);
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Deliver(message) => self.deliver(message),
            Step::Hear { c, operator } => self.hear(c.into(), operator),
            Step::TakeOver { c, heard } => {
                self.state.budget.takeovers -= 1;
                self.claim(c.into(), heard);
            }
            Step::Settle { c } => self.settle(c.into()),
            Step::Plan { c, target } => {
                self.state.budget.plans -= 1;
                self.state.controllers[usize::from(c)].target = target;
                self.act(c.into());
            }
            Step::Give { c, id } => self.give(c.into(), id),
            Step::Pass { c, id } => self.pass(c.into(), id),
            Step::Suspect { c, operator } => {
                self.state.budget.suspicions -= 1;
                self.channel(c.into(), operator).is_dead = true;
                self.fail(c.into(), operator);
            }
            Step::Forget { c, operator } => self.forget(c.into(), operator),
            Step::Reopen { c, operator } => {
                self.state.budget.reopenings -= 1;
                self.close(c.into(), operator);
            }
            Step::RestartOperator(operator) => {
                self.state.budget.operator_restarts -= 1;
                self.state.operators[usize::from(operator)].restart(self.scope.planted);
            }
            Step::RestartController(c) => {
                self.state.budget.controller_restarts -= 1;
                let controller = &mut self.state.controllers[usize::from(c)];
                *controller = Controller { me: controller.me + 2, ..Default::default() };
            }
            Step::Request => self.request(),
            Step::Arrive { place } => self.arrive(place),
            Step::Answer { place, via } => self.answer(place, via),
            Step::Expire(operator) => {
                let at = &mut self.state.operators[usize::from(operator)];
                (at.ids, at.label) = ([Rule::Unknown; IDS], None);
            }
        }
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Ask { .. } | Message::Set { .. } => self.at_operator(message),
            Message::Inventory { term, .. } => {
                if let Some(c) = self.of_term(term) {
                    self.inventory(c, message);
                }
            }
            Message::Done { operator, term, number, incarnation } => {
                if let Some(c) = self.of_term(term) {
                    self.done(c, operator, number, incarnation);
                }
            }
        }
    }

    fn of_term(&self, term: Term) -> Option<usize> {
        self.state.controllers.iter().position(|controller| controller.has(term))
    }

    /// A controller polls an operator and gets the answer. A late answer tells nothing that an earlier one could not.
    fn hear(&mut self, c: usize, operator: u8) {
        let term = self.state.controllers[c].term;
        let at = &mut self.state.operators[usize::from(operator)];
        let follows = term >= at.term || self.scope.has(Planted::OlderTermObeyed);
        if !follows {
            let later = at.term;
            return self.step_down(c, later);
        }
        let incarnation = at.incarnation;
        let channel = &self.state.controllers[c].channels[usize::from(operator)];
        // Without an inventory, it is asked for one.
        if !channel.is_open {
            return;
        }
        let (known, was_dead) = (channel.incarnation, channel.is_dead);
        self.state.operators[usize::from(operator)].follows(term, self.scope.planted);
        self.is_alive(c, operator);
        if known != Some(incarnation) {
            self.operator_restarted(c, operator, incarnation);
        } else if was_dead {
            self.act(c);
        }
    }

    /// Discards what is known of an operator that has been unreachable for very long.
    fn forget(&mut self, c: usize, operator: u8) {
        self.state.budget.forgets -= 1;
        self.state.is_excused |= !self.state.operators[usize::from(operator)].is_empty();
        self.channel(c, operator).is_lost = true;
        if self.channel(c, operator).is_open {
            self.close(c, operator);
        }
        if operator == LABELLER {
            self.state.controllers[c].in_force = Some(None);
        }
        self.act(c);
    }

    /// Drops messages without effect.
    pub(super) fn reduced(mut self) -> State {
        let messages = std::mem::take(&mut self.state.messages);
        let kept: Vec<Message> =
            messages.iter().filter(|message| self.has_effect(message, &messages)).copied().collect();
        self.state.messages = kept;
        self.state
    }

    fn has_effect(&self, message: &Message, all: &[Message]) -> bool {
        let channel = |term, operator: u8| {
            let c = self.of_term(term)?;
            Some(&self.state.controllers[c].channels[usize::from(operator)])
        };
        match *message {
            Message::Ask { operator, term, loading } => {
                let at = &self.state.operators[usize::from(operator)];
                let is_asked = channel(term, operator).is_some_and(|of| !of.is_open && of.loading == loading);
                let is_news = term > at.term || term == at.term && loading > at.last.loading;
                is_asked || is_news || self.scope.planted.is_some_and(Planted::keeps_old)
            }
            Message::Inventory { operator, term, asked, .. } => {
                channel(term, operator).is_some_and(|of| !of.is_open && of.loading == asked)
            }
            Message::Set { operator, term, number, incarnation, .. } => {
                let at = &self.state.operators[usize::from(operator)];
                let is_waited_for = || {
                    let waits =
                        channel(term, operator).and_then(|of| of.sent).is_some_and(|sent| sent.number == number);
                    waits && !all.contains(&Message::Done { operator, term, number, incarnation })
                };
                let is_new = term > at.term || term == at.term && number > at.last;
                let is_again = term == at.term && number == at.last && is_waited_for();
                incarnation == at.incarnation && (is_new || is_again)
                    || self.scope.planted.is_some_and(Planted::keeps_old)
            }
            Message::Done { operator, term, number, incarnation } => channel(term, operator).is_some_and(|of| {
                of.incarnation == Some(incarnation) && of.sent.is_some_and(|sent| sent.number == number)
            }),
        }
    }
}
