//! Checks the callers' view: every task ends once, with its own result, and no task runs without an assignment (T2,
//! T9).
//!
//! | violation | excused by |
//! |---|---|
//! | a task ends twice, or with another's result | none |
//! | a task ends without its client's request | the death of its client: its tasks have no owner |
//! | a result of an attempt that did not end | none |
//! | more runs of an attempt than assignments of it, or a run of one that went back | none |
//! | more parallel runs than the executor has slots | none |
//! | a task that starts later than two spans after it came to its executor | any fault, and a network that loses datagrams |
//! | a task that ends as lost | its own time-out |
//! | a task that ends as cancelled | a caller's request |
//! | a task that ends as cancelled, removed or vanished, and was assigned | any fault: an earlier attempt may have run; its own time-out |
//! | a task that ends as cancelled, stopped, and no run of it was stopped | none |
//! | a task that is assigned after it has ended as cancelled (T17) | several switches, or lives of one; its own time-out |
//! | a task that starts after it has ended as cancelled (T17) | any fault: its assignment was late; its own time-out |
//! | an unassigned task that ends as cancelled later than [`STOP_WITHIN`] (T17) | any fault; its own time-out |
//! | a run of a cancelled task that continues for longer than [`STOP_WITHIN`] (T17) | any fault but lost datagrams, which excuse two seconds; a function that ignores the stop |

use super::rules::*;
use crate::NodeId;
use crate::check::{Checked, holds};
use crate::tasks::{TaskEnd, TaskEvent, is_deaf, result_of};
use midflight_endpoint::{MS, Nanos};
use midflight_tasks::client::CancelledHow;
use midflight_tasks::executor::RunKey;
use std::collections::{HashMap, HashSet};

/// Limit of a run after its task was cancelled, or after its start if later. Without losses and faults packets are late
/// by up to 5 ms: SUBMIT_ACK, CANCEL and its answer, and STOP in sequence, and again if STOP has overtaken ASSIGN.
const STOP_WITHIN: Nanos = 100 * MS;
/// The limit with up to 5 % loss: each datagram is repeated at doubling intervals.
const STOP_WITHIN_OF_LOSSES: Nanos = 2_000 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Open,
    Ended,
    Cancelled,
    Orphan,
}

#[derive(Clone, Copy, Debug, Default)]
struct Attempt {
    assigned: u32,
    started: u32,
    ended: u32,
}

#[derive(Debug)]
struct Task {
    client: NodeId,
    key: u64,
    argument: [u8; 16],
    has_timeout: bool,
    cancel_asked: Option<Nanos>,
    stop_asked: Option<Nanos>,
    stopped: u32,
    standing: Standing,
    attempts: Vec<(u8, Attempt)>,
}

impl Task {
    fn attempt(&mut self, number: u8) -> &mut Attempt {
        let place = self.attempts.iter().position(|(n, _)| *n == number).unwrap_or_else(|| {
            self.attempts.push((number, Attempt::default()));
            self.attempts.len() - 1
        });
        &mut self.attempts[place].1
    }
}

/// A task of a future job: its argument, which determines its result, and whether it may time out.
pub(super) type Wanted = ([u8; 16], bool);

#[derive(Clone, Copy, Debug)]
struct Run {
    task: usize,
    attempt: u8,
    started: Nanos,
}

#[derive(Debug, Default)]
pub(super) struct Callers {
    jobs: HashMap<u32, Vec<Wanted>>,
    tasks: Vec<Task>,
    /// By submitted job, the client's key of its first task, and the place in `tasks`.
    submitted: HashMap<u32, (u64, usize)>,
    by_key: HashMap<(NodeId, u64), usize>,
    runs: HashMap<(NodeId, RunKey), Run>,
    waits: HashSet<(NodeId, RunKey)>,
    open: usize,
    /// Total time in which at least one task ran, and the end of that count.
    busy: (Nanos, Nanos),
    /// The trial has no faults, so each task's fate is exact.
    pub(super) calm: bool,
    pub(super) slots: HashMap<NodeId, usize>,
    /// Longest wait of a task at its executor, in a trial without faults.
    pub(super) held_at_most: Nanos,
    /// The trial has no faults but lost datagrams.
    pub(super) only_loses: bool,
    /// A switch may not know another's promises.
    pub(super) forgets: bool,
}

impl Callers {
    pub(super) fn expect(&mut self, jid: u32, tasks: Vec<Wanted>) {
        self.jobs.insert(jid, tasks);
    }

    /// Open tasks of live callers.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// The open tasks, for a report: client, key, and the counts of their attempts.
    pub(super) fn waiting(&self) -> String {
        let open = self.tasks.iter().filter(|task| task.standing == Standing::Open);
        let tell = |task: &Task| format!("key {} of node {}: {:?}", task.key, task.client.index(), task.attempts);
        open.take(3).map(tell).collect::<Vec<_>>().join("; ")
    }

    /// The client's key of a submitted job's first task, if its client lives.
    pub(super) fn first_key(&self, jid: u32) -> Option<u64> {
        let (first, place) = *self.submitted.get(&jid)?;
        (self.by_key.get(&(self.tasks[place].client, first)) == Some(&place)).then_some(first)
    }

    fn find(&mut self, jid: u32, tid: u32) -> Option<usize> {
        let (first, place) = *self.submitted.get(&jid)?;
        let offset = u64::from(tid).checked_sub(first)? as usize;
        (offset < self.jobs[&jid].len()).then_some(place + offset)
    }

    /// Whether a task may time out, and so be submitted again while it runs.
    pub(super) fn has_timeout(&mut self, jid: u32, tid: u32) -> bool {
        self.find(jid, tid).is_some_and(|task| self.tasks[task].has_timeout)
    }

    pub(super) fn assigned(&mut self, jid: u32, tid: u32, attempt: u8) -> Checked {
        let Some(task) = self.find(jid, tid) else {
            holds!(T1, false, "task {tid} of job {jid} is assigned, which nobody has submitted");
            return Ok(());
        };
        let task = &mut self.tasks[task];
        let excused = self.forgets || task.has_timeout || task.standing != Standing::Cancelled;
        holds!(T17, excused, "task {tid} of job {jid} is assigned after its caller has heard that it is cancelled");
        task.attempt(attempt).assigned += 1;
        Ok(())
    }

    /// An executor returned an attempt unstarted. It must not start it any more.
    pub(super) fn given_back(&mut self, jid: u32, tid: u32, attempt: u8) -> Checked {
        let Some(task) = self.find(jid, tid) else { return Ok(()) };
        let known = self.tasks[task].attempt(attempt);
        known.assigned = known.assigned.saturating_sub(1);
        let Attempt { started, assigned, .. } = *known;
        holds!(T2, started <= assigned, "task {tid} of job {jid}: attempt {attempt} is given back, and has started");
        Ok(())
    }

    pub(super) fn busy(&mut self, now: Nanos) -> Nanos {
        let (busy, until) = &mut self.busy;
        if !self.runs.is_empty() {
            *busy += now.saturating_sub(*until);
        }
        *until = now;
        *busy
    }

    pub(super) fn happened(&mut self, now: Nanos, event: &TaskEvent) -> Checked {
        self.busy(now);
        match event {
            TaskEvent::Submitted { client, jid, keys } => self.submit(*client, *jid, keys.clone()),
            TaskEvent::Started { executor, run, jid, tid, attempt, held_for, .. } => {
                let Some(task) = self.find(*jid, *tid) else {
                    holds!(T1, false, "task {tid} of job {jid} runs, which nobody has submitted");
                    return Ok(());
                };
                let of = &self.tasks[task];
                let excused = !self.calm || of.has_timeout || of.standing != Standing::Cancelled;
                holds!(T17, excused, "task {tid} of job {jid} starts after its caller has heard that it is cancelled");
                let known = self.tasks[task].attempt(*attempt);
                known.started += 1;
                let Attempt { started, assigned, .. } = *known;
                holds!(
                    T2,
                    started <= assigned,
                    "task {tid} of job {jid}: attempt {attempt} starts {started} times, assigned {assigned} times"
                );
                let before = self.runs.insert((*executor, *run), Run { task, attempt: *attempt, started: now });
                holds!(T2, before.is_none(), "{run:?} of node {} starts while it runs", executor.index());
                self.starts_as_it_may(*executor, *held_for)?;
            }
            TaskEvent::Ended { executor, run, stopped } => {
                self.waits.remove(&(*executor, *run));
                let Some(ended) = self.runs.remove(&(*executor, *run)) else {
                    holds!(T2, false, "{run:?} of node {} ends, which does not run", executor.index());
                    return Ok(());
                };
                self.ended(now, ended, *stopped)?;
            }
            TaskEvent::Reported { client, key, end } => self.reported(now, *client, key.0, end)?,
            TaskEvent::CancelAsked { client, keys, stop } => {
                for key in keys {
                    if let Some(&task) = self.by_key.get(&(*client, key.0)) {
                        let task = &mut self.tasks[task];
                        task.cancel_asked = task.cancel_asked.or(Some(now));
                        task.stop_asked = task.stop_asked.or(stop.then_some(now));
                    }
                }
            }
            TaskEvent::Waits { executor, run, waits: true } => {
                self.waits.insert((*executor, *run));
            }
            TaskEvent::Waits { executor, run, waits: false } => {
                self.waits.remove(&(*executor, *run));
            }
            TaskEvent::Drained { .. } => {}
        }
        Ok(())
    }

    /// An executor runs at most as many tasks as it has slots, except those that wait for others, and holds none for
    /// longer than two spans.
    fn starts_as_it_may(&self, executor: NodeId, held_for: Nanos) -> Checked {
        let works = |run: &&(NodeId, RunKey)| run.0 == executor && !self.waits.contains(*run);
        let runs = self.runs.keys().filter(works).count();
        let slots = self.slots.get(&executor).copied().unwrap_or(usize::MAX);
        holds!(BOOKS, runs <= slots, "node {} with {slots} slots runs {runs} tasks", executor.index());
        let in_time = !self.calm || held_for <= self.held_at_most;
        holds!(T6, in_time, "node {} starts a task {held_for} ns after it came", executor.index());
        Ok(())
    }

    fn submit(&mut self, client: NodeId, jid: u32, keys: std::ops::Range<u64>) {
        let Some(wanted) = self.jobs.get(&jid) else { return };
        self.submitted.insert(jid, (keys.start, self.tasks.len()));
        for (&(argument, has_timeout), key) in wanted.iter().zip(keys) {
            self.by_key.insert((client, key), self.tasks.len());
            self.tasks.push(Task {
                client,
                key,
                argument,
                has_timeout,
                cancel_asked: None,
                stop_asked: None,
                stopped: 0,
                standing: Standing::Open,
                attempts: Vec::new(),
            });
            self.open += 1;
        }
    }

    /// A run has ended. If it was stopped, its client must have cancelled it; a cancelled run must end in time.
    fn ended(&mut self, now: Nanos, Run { task, attempt, started }: Run, stopped: bool) -> Checked {
        let within = if self.calm { STOP_WITHIN } else { STOP_WITHIN_OF_LOSSES };
        let task = &mut self.tasks[task];
        // If KEEPALIVEs were lost and its lease expired, no switch knows it any more.
        let is_last = task.attempts.iter().all(|(number, _)| *number <= attempt);
        let (key, client) = (task.key, task.client.index());
        // After a long partition, its client gave it up.
        let was_given_up = !self.calm && !self.only_loses;
        let wanted = task.stop_asked.is_some() || task.has_timeout || task.standing == Standing::Orphan || was_given_up;
        holds!(T17, !stopped || wanted, "a run of task {key} of node {client} is stopped, which nobody has cancelled");
        if let Some(asked) = task.stop_asked
            && (self.calm || (self.only_loses && is_last))
            && !is_deaf(&task.argument)
        {
            let longer = now.saturating_sub(asked.max(started));
            holds!(
                T17,
                longer <= within,
                "task {key} of node {client} runs on for {} ms though it is cancelled",
                longer / MS
            );
        }
        task.stopped += u32::from(stopped);
        task.attempt(attempt).ended += 1;
        Ok(())
    }

    fn reported(&mut self, now: Nanos, client: NodeId, key: u64, end: &TaskEnd) -> Checked {
        let Some(&place) = self.by_key.get(&(client, key)) else {
            holds!(T9, false, "node {} reports the end of task {key}, which it was not given", client.index());
            return Ok(());
        };
        let task = &mut self.tasks[place];
        holds!(T9, task.standing == Standing::Open, "task {key} of node {} ends again: {end:?}", client.index());
        task.standing = if matches!(end, TaskEnd::Cancelled(_)) { Standing::Cancelled } else { Standing::Ended };
        self.open -= 1;
        match end {
            TaskEnd::Completed { ok, attempt, result } => {
                let own = *ok && *result == result_of(&task.argument);
                holds!(T9, own, "task {key} of node {} ends with the result of another: {result:?}", client.index());
                let ended = task.attempt(*attempt).ended;
                holds!(T9, ended > 0, "task {key}: a result of attempt {attempt}, which did not end");
            }
            TaskEnd::Lost => holds!(T9, task.has_timeout, "task {key} of node {} is lost", client.index()),
            TaskEnd::Cancelled(how) => {
                let asked = task.cancel_asked.unwrap_or(now);
                holds!(
                    T9,
                    task.cancel_asked.is_some(),
                    "task {key} of node {} is cancelled, by nobody",
                    client.index()
                );
                let soon = !self.calm || task.has_timeout || now.saturating_sub(asked) <= STOP_WITHIN;
                holds!(T17, soon || !task.attempts.is_empty(), "task {key} of node {} ends late", client.index());
                let is_so = match how {
                    CancelledHow::Stopped => task.stopped > 0,
                    _ if !self.calm || task.has_timeout => true,
                    // A SUBMIT that was sent twice without being accepted leaves it open whether a switch had the task.
                    // A returned one has not begun.
                    CancelledHow::TakenOut | CancelledHow::Vanished => {
                        task.attempts.iter().all(|(_, attempt)| attempt.assigned == 0)
                    }
                };
                let attempts = &task.attempts;
                holds!(T9, is_so, "task {key} of node {} is reported as {how:?}: {attempts:?}", client.index());
            }
        }
        Ok(())
    }

    /// A node died: its runs end, and its tasks have no caller.
    pub(super) fn crashed(&mut self, now: Nanos, node: NodeId) {
        self.busy(now);
        self.runs.retain(|(executor, _), _| *executor != node);
        self.waits.retain(|(executor, _)| *executor != node);
        let orphans: Vec<_> = self.by_key.extract_if(|(client, _), _| *client == node).map(|(_, task)| task).collect();
        for task in orphans {
            if self.tasks[task].standing == Standing::Open {
                self.tasks[task].standing = Standing::Orphan;
                self.open -= 1;
            }
        }
    }

    /// The most started attempts of a task with a live caller.
    pub(super) fn most_starts(&self) -> u32 {
        let kept = self.tasks.iter().filter(|task| task.standing != Standing::Orphan);
        kept.map(|task| task.attempts.iter().map(|(_, attempt)| attempt.started).sum()).max().unwrap_or(0)
    }
}
