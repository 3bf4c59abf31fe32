//! The model's steps in words, for the report of a broken property. Ids count from 1, as in packets; controllers are
//! letters, operators numbers.

use super::state::{Message, Orders, Rule, Term};
use super::world::Step;
use std::fmt::{Display, Formatter, Result};

struct Of(u8);

impl Display for Of {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "controller {}", char::from(b'A' + self.0))
    }
}

struct Id(Option<u8>);

impl Display for Id {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            Some(id) => write!(f, "id {}", id + 1),
            None => write!(f, "none"),
        }
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "term {}.{}", self.number, self.controller)
    }
}

impl Display for Orders {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut says = Vec::new();
        if self.grouped {
            says.push("replica groups".to_string());
        }
        for (id, rule) in (1..).zip(self.ids) {
            match rule {
                Some(Rule::Serve) => says.push(format!("serve id {id}")),
                Some(Rule::At(owner)) => says.push(format!("id {id} is operator {owner}'s")),
                Some(Rule::Unknown) => says.push(format!("remove id {id}")),
                None => {}
            }
        }
        if let Some(label) = self.label {
            says.push(format!("the label is {}", Id(label)));
        }
        if self.complete {
            says.push("that is all".to_string());
        }
        write!(f, "{}", says.join(", "))
    }
}

impl Display for Message {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Ask { operator, term, loading } => {
                write!(f, "ASK of {term} to operator {operator}, loading {loading}")
            }
            Self::Inventory { operator, term, asked, label, .. } => {
                write!(f, "INVENTORY of operator {operator} to {term}, loading {asked}, label {}", Id(label))
            }
            Self::Set { operator, term, number, orders, .. } => {
                let (loading, sequence) = (number.loading, number.sequence);
                write!(f, "SET {loading}.{sequence} of {term} to operator {operator}: {orders}")
            }
            Self::Done { operator, term, number, .. } => {
                let (loading, sequence) = (number.loading, number.sequence);
                write!(f, "DONE {loading}.{sequence} of operator {operator} to {term}")
            }
        }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Deliver(message) => write!(f, "arrives: {message}"),
            Self::Hear { c, operator } => write!(f, "operator {operator} answers {}", Of(c)),
            Self::TakeOver { c, .. } => write!(f, "{} takes over", Of(c)),
            Self::Settle { c } => write!(f, "{} begins to act without all operators", Of(c)),
            Self::Plan { c, target: Some(operator) } => write!(f, "{} plans: operator {operator}", Of(c)),
            Self::Plan { c, target: None } => write!(f, "{} plans: degraded", Of(c)),
            Self::Give { c, id } => write!(f, "{} gives out {}", Of(c), Id(Some(id))),
            Self::Pass { c, id } => write!(f, "the longest time of an answer passes: {}, {}", Of(c), Id(Some(id))),
            Self::Suspect { c, operator } => write!(f, "{} takes operator {operator} for dead", Of(c)),
            Self::Forget { c, operator } => write!(f, "{} forgets operator {operator}", Of(c)),
            Self::Reopen { c, operator } => write!(f, "{} asks operator {operator} for an inventory", Of(c)),
            Self::RestartOperator(operator) => write!(f, "operator {operator} starts again"),
            Self::RestartController(c) => write!(f, "{} starts again", Of(c)),
            Self::Request => write!(f, "a client sends a request"),
            Self::Arrive { place } => write!(f, "request {place} arrives"),
            Self::Answer { place, via } => write!(f, "the answer to request {place} reaches operator {via}"),
            Self::Expire(operator) => write!(f, "operator {operator} has heard of no controller for long"),
        }
    }
}
