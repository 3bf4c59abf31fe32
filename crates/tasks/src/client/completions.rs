//! Completions from executors. The first final completion of a task counts. All are acknowledged, also those of unknown
//! tasks, so that executors stop sending them.

use super::acks::Report;
use super::table::{Cancel, Name, Record, State};
use super::token::Tokens;
use super::{CancelledHow, Client, Event, LostWhy, Outcome, Timing};
use crate::mutants::planted;
use crate::proof::Token;
use midflight_endpoint::Nanos;
use midflight_wire::{AckState, BlobRef, Complete, Completion, Completions, Status};
use std::net::SocketAddr;
use zerocopy::{FromBytes, IntoBytes};

/// What a completion does to its task.
enum Verdict {
    /// It ends the task.
    Final(Status),
    /// Another attempt follows, or none is left.
    Retry(LostWhy),
    /// It was stopped, as the caller wanted.
    Stopped,
    /// Nothing: a later attempt is running.
    Nothing,
}

impl Client {
    pub(super) fn handle_complete(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        fixed: &Complete,
        completions: Completions<'_>,
    ) {
        for (completion, result) in completions {
            let name = Name { submission: completion.submission.get(), index: completion.index };
            let Some((token, blob)) = proven(&self.tokens, fixed.executor.get(), completion, result) else {
                self.counters.unproven += 1;
                continue;
            };
            let result = blob.as_ref().map_or(result, |blob| blob.as_bytes());
            let Some(status) = Status::from_number(completion.status) else {
                self.counters.malformed += 1;
                continue;
            };
            if status == Status::Part && !(planted(97) && completion.attempt > 1) {
                self.gave_back_part(name, completion.attempt, result);
                self.acks.push(Report::of(from, token, completion), AckState::Part);
                continue;
            }
            self.stopping.forget(name);
            let report = Report::of(from, token, completion);
            let state = self.completed(now, report, name, status, completion, result);
            if let Some(state) = state {
                self.acks.push(report, state);
            }
        }
    }

    /// An attempt goes on and gives back a part of its task. Any attempt may do so, and repeatedly: the driver knows what it
    /// still waits for.
    fn gave_back_part(&mut self, name: Name, attempt: u8, part: &[u8]) {
        match self.table.by_name(name).map(|at| self.table.get(at)) {
            Some(record) if record.state != State::Fetching => {
                self.counters.parts += 1;
                self.events.push_back(Event::Part { key: record.key(), attempt, part: part.to_vec() });
            }
            _ => self.counters.completions_ignored += 1,
        }
    }

    /// Handles one completion. Returns how to acknowledge it; nothing if its executor is to repeat it, because what follows from it
    /// is not saved yet.
    fn completed(
        &mut self,
        now: Nanos,
        report: Report,
        name: Name,
        status: Status,
        completion: &Completion,
        result: &[u8],
    ) -> Option<AckState> {
        let Some(at) = self.table.by_name(name) else {
            self.counters.completions_ignored += 1;
            return Some(AckState::Done);
        };
        let record = self.table.get(at);
        if record.state == State::Fetching {
            self.counters.completions_ignored += 1;
            let is_repeated = self.fetches.get(&record.key) == Some(&report);
            return match (is_repeated, self.config.durable) {
                (true, _) => self.provisional(completion),
                (false, true) => None, // until the first one is saved
                (false, false) => Some(AckState::Done),
            };
        }
        match judge(record, name, status) {
            Verdict::Nothing => {
                self.counters.completions_ignored += 1;
                return (!self.unsaved).then_some(AckState::Done);
            }
            Verdict::Stopped => self.cancelled(at, CancelledHow::Stopped),
            Verdict::Retry(why) => {
                let record = self.table.get_mut(at);
                if record.resumed && status == Status::Abandoned {
                    // It did not run: nobody served its argument, because no process of this client ran. That is no attempt.
                    record.attempts_left = record.attempts_left.saturating_add(1);
                }
                let key = record.key;
                self.retry_or_lose(now, at, completion.attempt, why);
                if let Some(at) = self.table.by_key(key) {
                    self.save(&[at]);
                }
                return (!self.unsaved).then_some(AckState::Done);
            }
            Verdict::Final(status) => {
                return self.end(now, report, at, status, completion, result);
            }
        }
        Some(AckState::Done)
    }

    fn end(
        &mut self,
        now: Nanos,
        report: Report,
        at: u32,
        status: Status,
        completion: &Completion,
        result: &[u8],
    ) -> Option<AckState> {
        let record = self.table.get_mut(at);
        let key = record.key();
        self.along.ended(now, key, report.executor);
        let timing = Timing {
            submitted: record.submitted,
            sent: record.sent.unwrap_or(record.submitted),
            completed: now,
            waited_us: completion.waited_us.get(),
            held_us: completion.held_us.get(),
            ran_ns: completion.ran_ns.get(),
        };
        // The parser has checked the length of a reference.
        let blob = BlobRef::read_from_bytes(result).ok().filter(|_| completion.by_reference == 1);
        let result = match blob {
            Some(blob) => Outcome::ByReference { executor: report.executor, blob },
            None => Outcome::Inline(result.to_vec()),
        };
        let state = if blob.is_some() || self.config.durable {
            record.state = State::Fetching;
            record.deadline = Nanos::MAX;
            self.table.unlink(at);
            self.fetches.insert(key.0, report);
            self.provisional(completion)
        } else {
            self.counters.completed += 1;
            self.table.remove(at);
            Some(AckState::Done)
        };
        self.events.push_back(Event::Completed { key, status, attempt: report.attempt, result, timing });
        state
    }
}

impl Client {
    /// How to acknowledge a result that is being fetched, or saved. For an executor FETCHING says nothing of a result that was in the
    /// packet but that it has arrived: it would forget it.
    fn provisional(&self, completion: &Completion) -> Option<AckState> {
        (completion.by_reference == 1).then_some(AckState::Fetching)
    }
}

/// The token by which a completion is proven, and its result if that is by reference.
fn proven(tokens: &Tokens, executor: u64, completion: &Completion, result: &[u8]) -> Option<(Token, Option<BlobRef>)> {
    let proof = completion.proof.get();
    // The parser has checked the length of a reference.
    let hidden = BlobRef::read_from_bytes(result).ok().filter(|_| completion.by_reference == 1);
    tokens.known_of(completion.submission.get()).find_map(|token| {
        let blob = hidden.map(|hidden| token.hide(proof, &hidden));
        let result = blob.as_ref().map_or(result, |blob| blob.as_bytes());
        (token.completion_proof(executor, completion, result) == proof).then_some((token, blob))
    })
}

/// A result counts from any attempt; a failure counts only for the attempt that it names.
fn judge(record: &Record, name: Name, status: Status) -> Verdict {
    if planted(38) && status == Status::Cancelled && record.timeout != Nanos::MAX {
        return Verdict::Stopped; // planted bug: the end of an older attempt ends the task
    }
    let is_present = record.name() == Some(name) && record.is_with_switch();
    match status {
        Status::Ok => Verdict::Final(status),
        Status::Failed | Status::Unknown if !record.retry_failed => Verdict::Final(status),
        _ if !is_present => Verdict::Nothing,
        Status::Cancelled if record.cancel == Cancel::Stop => Verdict::Stopped,
        // Nobody has asked for it. The switch will say that it no longer has the task.
        Status::Cancelled => Verdict::Nothing,
        Status::Abandoned => Verdict::Retry(LostWhy::Abandoned),
        Status::Failed | Status::Unknown if record.attempts_left == 0 => Verdict::Final(status),
        // The reason is not used, because an attempt is left.
        Status::Failed | Status::Unknown => Verdict::Retry(LostWhy::Abandoned),
        Status::Part if planted(97) => Verdict::Final(Status::Ok), // a mutant: a part of a further attempt is its result
        Status::Part => Verdict::Nothing,                          // it ends nothing
    }
}
