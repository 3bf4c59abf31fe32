//! The checks after the last fault: recovery and totals.

use super::super::bound::bound;
use super::super::excuses::Excuses;
use super::super::rules::*;
use super::{FaultKind, Party, SwitchSpec, TasksSubject};
use crate::check::{Broken, Checked, Common, Subject, holds};
use crate::tasks::nodes;
use midflight_endpoint::{MS, Nanos};
use midflight_tasks::executor::Executor;

/// For this long afterwards, no ended task may have further events.
const AFTERMATH: Nanos = 500 * MS;
const CHECK_EVERY: Nanos = 100 * MS;

/// A deadline that running tasks extend.
#[derive(Clone, Copy)]
struct Patience {
    until: Nanos,
    /// Total run time when it was set.
    busy: Nanos,
}

impl TasksSubject {
    /// Every task of a live caller ends in time; within the same time again, no party keeps a record of it; then
    /// nothing more happens.
    pub(super) fn all_heals(&mut self) -> Checked {
        self.all_end()?;
        self.soon(Self::is_calm)?;
        self.run_until(self.run.world.now() + AFTERMATH)?;
        self.run_until(self.run.world.now() + self.idle())?;
        self.soon(Self::nothing_is_left)
    }

    fn soon(&mut self, is_so: impl Fn(&Self) -> Checked) -> Checked {
        let patience = self.patience();
        while let Err(broken) = is_so(self) {
            if self.run.world.now() >= self.end_of(patience) {
                return Err(broken);
            }
            self.run_until(self.run.world.now() + CHECK_EVERY)?;
        }
        Ok(())
    }

    /// T16: all tasks end within its bound from now on, without run times.
    fn all_end(&mut self) -> Checked {
        let patience = self.patience();
        while self.run.world.now() < self.end_of(patience) {
            self.run.run_while(self.end_of(patience), |findings| findings.callers.open() > 0)?;
            if self.run.findings().callers.open() == 0 {
                return Ok(());
            }
        }
        let callers = &self.run.findings().callers;
        let (open, ms) = (callers.open(), bound(&self.run.trial) / MS);
        holds!(T16, open == 0, "{open} tasks have no end {ms} ms after the last fault: {}", callers.waiting());
        Ok(())
    }

    /// The deadline by T16, from now on.
    fn patience(&self) -> Patience {
        let now = self.run.world.now();
        Patience { until: now + bound(&self.run.trial), busy: self.run.findings().callers.busy(now) }
    }

    fn end_of(&self, patience: Patience) -> Nanos {
        let busy = self.run.findings().callers.busy(self.run.world.now());
        patience.until + (busy - patience.busy)
    }

    fn is_calm(&self) -> Checked {
        for (n, node) in self.run.places.of(Party::Executor).enumerate() {
            let Some(executor) = nodes::executor(&self.run.world, node) else { continue };
            let kept = executor.unacknowledged();
            for (bit, &total) in (0..).zip(&self.run.trial.executors[n].bundles) {
                let (is, of) = (executor.bundles(bit), executor.registered());
                let all = is.held == 0 && is.offered == of.min(total.into());
                holds!(T18, all, "executor {n} with {of} slots has {is:?} of resource {bit}");
            }
            holds!(
                HEALS,
                executor.running() == 0,
                "executor {n} runs {} tasks that nobody waits for",
                executor.running()
            );
            holds!(HEALS, executor.ready() == 0, "executor {n} holds {} tasks", executor.ready());
            holds!(HEALS, kept == 0, "executor {n} keeps {kept} completions that nobody acknowledges");
            let all = executor.registered() == self.run.trial.executors[n].slots || self.has_its_share(executor);
            holds!(HEALS, all, "executor {n} has {} slots registered", executor.registered());
        }
        let open = self.run.findings().open();
        holds!(T14, open == 0, "{open} tasks are with switches");
        Ok(())
    }

    /// The time in which switches drop the records of silent parties.
    fn idle(&self) -> Nanos {
        let idle = |spec: &SwitchSpec| spec.client_idle_ms.max(spec.slot_idle_ms) + 2 * spec.lease_ms;
        self.run.trial.switches.iter().map(idle).max().unwrap_or(0) * MS
    }

    /// T14: switches keep only the slots of executors that ask there. An executor that turned to another switch after a
    /// lost datagram may have left just now.
    fn nothing_is_left(&self) -> Checked {
        let executors: Vec<_> =
            self.run.places.of(Party::Executor).filter_map(|node| nodes::executor(&self.run.world, node)).collect();
        for (n, node) in self.run.places.of(Party::Switch).enumerate() {
            let Some(stats) = nodes::switch(&self.run.world, node) else { continue };
            let here = self.run.world.address(node);
            let living: u32 =
                executors.iter().filter(|e| e.switch() == here).map(|e| e.registered() + e.registered_ahead()).sum();
            let kept = (stats.clients, stats.queued.iter().sum::<u32>() + stats.busy, stats.slots);
            holds!(T14, kept == (0, 0, living), "switch {n} keeps {kept:?} clients, tasks, slots: {living} slots live");
        }
        Ok(())
    }

    /// T14: an executor with fewer slots than it wants has its share of them at its switch: at least eight times the
    /// free ones.
    fn has_its_share(&self, executor: &Executor) -> bool {
        let known = self.run.places.of(Party::Switch).zip(&self.run.trial.switches);
        let free =
            known.filter_map(|(node, spec)| Some(spec.slots - nodes::switch(&self.run.world, node)?.slots)).min();
        free.is_some_and(|free| executor.registered() + executor.registered_ahead() >= 8 * free)
    }

    /// The endpoints' counters add up; in a trial without faults, nothing was done twice.
    pub(super) fn books(&self) -> Checked {
        let findings = self.run.findings();
        let calm = Excuses::of(&self.run.trial).calm;
        let spoilt =
            self.run.trial.faults.iter().any(|fault| matches!(fault.what, FaultKind::Common(Common::Garbage(_))));
        let timeouts = self.run.trial.jobs.iter().flat_map(|job| &job.tasks).any(|task| task.timeout_ms > 0);
        if calm {
            holds!(T10, findings.requeued == 0, "{} tasks are queued again though all are well", findings.requeued);
            let starts = findings.callers.most_starts();
            holds!(T2, starts <= 1 || timeouts, "a task starts {starts} times though all are well");
        }
        for (n, node) in self.run.places.of(Party::Executor).enumerate() {
            let Some(executor) = nodes::executor(&self.run.world, node) else { continue };
            let c = executor.counters();
            // An executor that returned to a switch may have found earlier tasks of its own there.
            let (running, kept) = (u64::from(executor.running()), executor.unacknowledged() as u64);
            let ended = (c.runs, c.finished + c.parts) == (c.finished + running, c.delivered + c.given_up + kept);
            holds!(BOOKS, ended, "executor {n} counts {c:?}");
            let well = (c.given_up, c.resets, c.switch_changes) == (0, 0, 0) && (c.rejected == 0 || spoilt);
            holds!(HEALS, !calm || well, "executor {n} counts {c:?} though all are well");
        }
        for (n, node) in self.run.places.of(Party::Client).enumerate() {
            let Some(client) = nodes::client(&self.run.world, node) else { continue };
            let c = client.counters();
            let ended = c.submitted == c.completed + c.lost + c.cancelled && client.open() == 0;
            holds!(BOOKS, ended, "client {n} counts {c:?}");
            let well = (c.resubmitted, c.gone, c.failovers, c.too_old, c.bad_answers) == (0, 0, 0, 0, 0);
            holds!(T9, !calm || well, "client {n} counts {c:?} though all are well");
        }
        let too_long = self.run.world.network_counters().too_long;
        holds!(T15, too_long == 0 || spoilt, "{too_long} datagrams do not fit every path");
        for node in self.run.places.of(Party::Switch) {
            nodes::check_switch(&self.run.world, node).map_err(|what| Broken { rule: SOUND, what })?;
        }
        Ok(())
    }
}
