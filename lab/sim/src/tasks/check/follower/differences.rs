//! Finds the rule that a switch has broken from its difference to the model.

use super::super::rules::*;
use super::super::trace::describe;
use crate::check::{Broken, Checked, Rule, holds};
use midflight_dataplane::program::Engine;
use midflight_dataplane::{Datagram, Stats, TaskTotals, Verdict};
use midflight_spec::tasks::Model;
use midflight_wire::Header;
use midflight_wire::tasks::{Assignment, Operation, Packet, parse};
use std::collections::BTreeMap;
use zerocopy::FromBytes;

pub(super) struct Difference<'a> {
    pub(super) model: &'a Model,
    /// The datagram of the step, and the model's verdict on it; `None`: a tick.
    pub(super) question: Option<(&'a [u8], Verdict)>,
    pub(super) stats: &'a Stats,
}

impl Difference<'_> {
    pub(super) fn of_answers(&self, sent: &[Datagram], owed: &[Datagram]) -> Checked {
        if sent == owed {
            return Ok(());
        }
        let (given, right) = (assignments(sent), assignments(owed));
        if let Some(slot) = given.keys().chain(right.keys()).find(|slot| given.get(slot) != right.get(slot)) {
            return Err(self.wrong_assignment(*slot, given.get(slot), right.get(slot)));
        }
        let place = sent.iter().zip(owed).take_while(|(sent, owed)| sent == owed).count();
        let (sent, owed) = (sent.get(place), owed.get(place));
        let text = |datagram: Option<&Datagram>| {
            datagram.map_or("nothing".to_owned(), |(to, bytes)| format!("{} to {to}", describe(bytes)))
        };
        let question = self.question.map_or("a tick".to_owned(), |(datagram, _)| describe(datagram));
        let what = format!("{question} is answered by {}, not by {}", text(sent), text(owed));
        Err(Broken { rule: self.rule_of(sent, owed), what })
    }

    fn wrong_assignment(&self, slot: u32, given: Option<&Assignment>, right: Option<&Assignment>) -> Broken {
        let resources = self.model.slots().find(|view| view.number == slot).map(|view| view.resources);
        let name = |assignment: &Assignment| (assignment.token, assignment.submission, assignment.index);
        let rule = match (given, right) {
            (Some(given), _) if resources.is_some_and(|offered| given.task.resources & !offered != 0) => T5,
            _ if of_places(self.stats) != of_places(&self.model.stats()) => T19,
            _ if self.question.is_none() && given.is_some() != right.is_some() => T10,
            (Some(given), Some(right)) if given.task.priority != right.task.priority => T4,
            (Some(given), Some(right)) if name(given) != name(right) => T3,
            (None, _) => T6,
            _ => T2,
        };
        Broken { rule, what: format!("slot {slot} is given {given:?}, not {right:?}") }
    }

    fn rule_of(&self, sent: Option<&Datagram>, owed: Option<&Datagram>) -> Rule {
        let verdict = self.question.map_or(Verdict::Ok, |(_, verdict)| verdict);
        let epoch =
            |datagram: &Datagram| Header::ref_from_prefix(&datagram.1).map_or(0, |(header, _)| header.epoch.get());
        if is_refusal(verdict) && verdict != Verdict::NoCookie {
            return T11;
        }
        if let (Some(sent), Some(owed)) = (sent, owed)
            && epoch(sent) != epoch(owed)
        {
            return T9;
        }
        let bytes = owed.or(sent).map_or(&[][..], |(_, bytes)| bytes);
        match bytes.get(3).and_then(|&number| Operation::from_number(number)) {
            Some(Operation::SubmitAck) if verdict == Verdict::RepeatedSubmit => T8,
            Some(Operation::SubmitAck) => T7,
            Some(Operation::CancelAck | Operation::ProbeAck) => T1,
            Some(Operation::Cookie) => T13,
            Some(Operation::Registered | Operation::Stop) => T14,
            Some(Operation::Reset | Operation::Released) => T9,
            _ => T11,
        }
    }
}

pub(super) fn of_verdicts(verdict: Verdict, right: Verdict) -> Checked {
    let rule = match right {
        Verdict::NoCookie => T13,
        _ if is_refusal(right) || is_refusal(verdict) => T11,
        _ => BOOKS,
    };
    holds!(rule, verdict == right, "{} where it is {}", verdict.name(), right.name());
    Ok(())
}

pub(super) fn of_stats(counted: &Stats, right: &Stats) -> Checked {
    if counted == right {
        return Ok(());
    }
    let [one, other] = [counted, right].map(|s| {
        let TaskTotals { submitted, completed, cancelled, dropped, purged, .. } = s.tasks;
        (s.queued, s.busy, submitted, completed, cancelled, dropped, purged)
    });
    let names = "tasks queued, busy, submitted, completed, cancelled, dropped, purged";
    holds!(T1, one == other, "{names}: {one:?}, not {other:?}");
    let [one, other] = [counted, right].map(of_places);
    holds!(T19, one == other, "tasks at their place, out of patience, waiting for it; places: {one:?}, not {other:?}");
    let [one, other] = [counted, right].map(|s| (s.tasks.assigned, s.tasks.expired, s.tasks.returned));
    holds!(T10, one == other, "tasks assigned, expired, returned: {one:?}, not {other:?}");
    let [one, other] = [counted, right].map(|s| (s.parked, s.slots, s.clients, s.gaps));
    holds!(BOOKS, one == other, "slots parked, slots, clients, gaps: {one:?}, not {other:?}");
    for verdict in Verdict::ALL {
        let [one, other] = [counted, right].map(|s| s.reasons[*verdict as usize]);
        holds!(BOOKS, one == other, "{} is counted {one} times, not {other}", verdict.name());
    }
    let what = format!("packets by operation, or waits: {counted:?}, not {right:?}");
    Err(Broken { rule: BOOKS, what })
}

fn of_places(stats: &Stats) -> (u64, u64, u32, u32) {
    (stats.tasks.at_place, stats.tasks.out_of_patience, stats.for_place, stats.places)
}

/// Whether a verdict refuses a datagram before the switch accepts it as a party's.
fn is_refusal(verdict: Verdict) -> bool {
    verdict != Verdict::Ok && verdict as u32 <= Verdict::NoCookie as u32
}

/// The assignments in these answers, by slot.
pub(super) fn assignments(sent: &[Datagram]) -> BTreeMap<u32, Assignment> {
    let mut given = BTreeMap::new();
    for (_, bytes) in sent {
        if let Ok(Packet::Assign(_, assignments, _)) = parse(bytes) {
            given.extend(assignments.iter().map(|assignment| (assignment.slot.get(), *assignment)));
        }
    }
    given
}
