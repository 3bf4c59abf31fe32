//! An operator's side: `RuleKeeper` of `crates/cache`, which `lockstep` compares this with.

use super::planted::Planted;
use super::state::{Broken, GROUPS, IDS, LABEL, Message, Number, Operator, Orders, Rule, Term, key};
use super::world::World;

impl Operator {
    /// Whether to obey a message of this term. A later term supersedes earlier ones.
    pub(super) fn follows(&mut self, term: Term, planted: Option<Planted>) -> bool {
        let takes_any = planted == Some(Planted::OlderTermObeyed);
        let ties = planted == Some(Planted::SameNumberSameTerm) && term.number == self.term.number;
        if term < self.term && !takes_any && !ties {
            return false;
        }
        if term != self.term && !ties {
            (self.term, self.last, self.fresh) = (term, Number::default(), 0);
        }
        self.heard = self.heard.max(term);
        true
    }

    /// Answers a controller's request for an inventory. The answer stays true: earlier orders that arrive late are not
    /// carried out.
    pub(super) fn ask(&mut self, term: Term, loading: u8, planted: Option<Planted>) -> bool {
        let follows = self.follows(term, planted);
        if follows && loading > self.last.loading && planted != Some(Planted::InventoryWithoutFence) {
            self.last = Number { loading, sequence: 0 };
        }
        follows
    }

    /// Handles orders. Returns whether the answer is DONE, and whether they were carried out now.
    pub(super) fn set(
        &mut self,
        term: Term,
        number: Number,
        incarnation: u8,
        orders: &Orders,
        planted: Option<Planted>,
    ) -> (bool, bool) {
        if incarnation != self.incarnation && planted != Some(Planted::IncarnationIgnored) {
            return (false, false);
        }
        if !self.follows(term, planted) {
            return (false, false);
        }
        if number == self.last && number.sequence != 0 {
            return (true, false);
        }
        let Number { loading, sequence } = self.last;
        if number != (Number { loading, sequence: sequence + 1 }) && planted != Some(Planted::AnySequence) {
            return (false, false);
        }
        self.last = number;
        self.carry_out(orders);
        (true, true)
    }

    fn carry_out(&mut self, orders: &Orders) {
        if orders.grouped {
            self.grouped = true;
            self.fresh |= GROUPS;
        }
        for id in 0..IDS as u8 {
            if let Some(rule) = orders.ids[usize::from(id)] {
                self.ids[usize::from(id)] = rule;
                self.fresh |= key(id);
            }
        }
        if let Some(label) = orders.label {
            self.label = label;
            self.fresh |= LABEL;
        }
        if orders.complete {
            self.sweep();
        }
        self.forget_unset();
    }

    fn sweep(&mut self) {
        for id in 0..IDS as u8 {
            if self.fresh & key(id) == 0 {
                self.ids[usize::from(id)] = Rule::Unknown;
            }
        }
        if self.fresh & LABEL == 0 {
            self.label = None;
        }
    }

    /// Drops the marks of absent rules, which have no effect.
    fn forget_unset(&mut self) {
        self.fresh &= !GROUPS;
        for id in 0..IDS as u8 {
            if self.rule(id) == Rule::Unknown {
                self.fresh &= !key(id);
            }
        }
        if self.label.is_none() {
            self.fresh &= !LABEL;
        }
    }

    pub(super) fn restart(&mut self, planted: Option<Planted>) {
        let Self { incarnation, term, last, heard, .. } = *self;
        *self = Self { incarnation: incarnation + 1, ..Self::default() };
        if planted == Some(Planted::RestartKeepsSequence) {
            *self = Self { incarnation, term, last, heard, ..Self::default() };
        }
    }
}

impl World<'_> {
    pub(super) fn at_operator(&mut self, message: Message) {
        let planted = self.scope.planted;
        match message {
            Message::Ask { operator, term, loading } => {
                let at = &mut self.state.operators[usize::from(operator)];
                if at.ask(term, loading, planted) {
                    let Operator { incarnation, last, ids, label, .. } = *at;
                    self.send(Message::Inventory { operator, term, asked: loading, incarnation, last, ids, label });
                }
            }
            Message::Set { operator, term, number, incarnation, orders } => {
                let at = &mut self.state.operators[usize::from(operator)];
                let heard = at.heard;
                let (is_done, is_new) = at.set(term, number, incarnation, &orders, planted);
                let incarnation = at.incarnation;
                if is_new && term < heard {
                    self.breaks(Broken::Order);
                }
                if is_done {
                    self.send(Message::Done { operator, term, number, incarnation });
                }
            }
            Message::Inventory { .. } | Message::Done { .. } => {}
        }
    }
}
