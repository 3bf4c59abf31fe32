//! Completions from executors. The first final one of a task counts. The client acknowledges all, even for unknown tasks, so that
//! executors stop repeating them.

use super::acks::Report;
use super::table::{Cancel, Record, State, SubmissionName};
use super::token::Tokens;
use super::{CancelledHow, Client, Event, LostWhy, Outcome, TaskTiming};
use crate::mutants::planted;
use crate::proof::Token;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{AckState, BlobRef, Complete, Completion, Completions, Status};
use std::net::SocketAddr;
use zerocopy::{FromBytes, IntoBytes};

enum Verdict {
    /// Ends the task.
    Final(Status),
    /// Ends the attempt; another one follows if any is left.
    Retry(LostWhy),
    /// The attempt stopped at the caller's request.
    Stopped,
    /// None, because a later attempt is running.
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
            let name = SubmissionName { submission: completion.submission.get(), index: completion.index };
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
                let part = match blob {
                    Some(blob) => Outcome::ByReference { executor: from, blob },
                    None => Outcome::Inline(result.to_vec()),
                };
                self.gave_back_part(name, completion.attempt, part);
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

    /// Any attempt may return parts, repeatedly; the driver knows which it still needs.
    fn gave_back_part(&mut self, name: SubmissionName, attempt: u8, part: Outcome) {
        match self.table.by_name(name).map(|at| self.table.get(at)) {
            Some(record) if record.state != State::Fetching => {
                self.counters.parts += 1;
                self.events.push_back(Event::Part { key: record.key(), attempt, part });
            }
            _ => self.counters.completions_ignored += 1,
        }
    }

    /// Returns the acknowledgement. `None` makes the executor repeat the completion, because the outcome is not saved yet.
    fn completed(
        &mut self,
        now: Nanos,
        report: Report,
        name: SubmissionName,
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
                    // The argument could not be fetched while no process of this client ran, so the attempt does not count.
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
        let timing = TaskTiming {
            submitted: record.submitted,
            sent: record.sent.unwrap_or(record.submitted),
            completed: now,
            waited_us: completion.waited_us.get(),
            held_us: completion.held_us.get(),
            ran_ns: completion.ran_ns.get(),
        };
        // The parser checked the length of a reference.
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
    /// Acknowledgement while a result is fetched or saved. An executor would drop an inline result at FETCHING.
    fn provisional(&self, completion: &Completion) -> Option<AckState> {
        (completion.by_reference == 1).then_some(AckState::Fetching)
    }
}

/// The token that proves a completion, and its decrypted reference, if any.
fn proven(tokens: &Tokens, executor: u64, completion: &Completion, result: &[u8]) -> Option<(Token, Option<BlobRef>)> {
    let proof = completion.proof.get();
    let hidden = BlobRef::read_from_bytes(result).ok().filter(|_| completion.by_reference == 1);
    tokens.known_of(completion.submission.get()).find_map(|token| {
        let blob = hidden.map(|hidden| token.hide(proof, &hidden));
        let result = blob.as_ref().map_or(result, |blob| blob.as_bytes());
        (token.completion_proof(executor, completion, result) == proof).then_some((token, blob))
    })
}

/// A result counts from any attempt; a failure only from the attempt that it names.
fn judge(record: &Record, name: SubmissionName, status: Status) -> Verdict {
    if planted(38) && status == Status::Cancelled && record.timeout != Nanos::MAX {
        return Verdict::Stopped; // planted bug: the end of an older attempt ends the task
    }
    let is_present = record.name() == Some(name) && record.is_with_switch();
    match status {
        Status::Ok => Verdict::Final(status),
        Status::Failed | Status::Unknown if !record.retry_failed => Verdict::Final(status),
        _ if !is_present => Verdict::Nothing,
        Status::Cancelled if record.cancel == Cancel::Stop => Verdict::Stopped,
        // The client did not ask for it. The switch will report the task as gone.
        Status::Cancelled => Verdict::Nothing,
        Status::Abandoned => Verdict::Retry(LostWhy::Abandoned),
        Status::Failed | Status::Unknown if record.attempts_left == 0 => Verdict::Final(status),
        // The reason is unused, because an attempt is left.
        Status::Failed | Status::Unknown => Verdict::Retry(LostWhy::Abandoned),
        Status::Part if planted(97) => Verdict::Final(Status::Ok), // planted bug: a part counts as the result
        Status::Part => Verdict::Nothing,                          // it ends nothing
    }
}
