//! What must be true when the last fault is over: all heals, and what everybody has counted adds up.

use super::super::excuses::Excuses;
use super::super::rules::{Checked, holds};
use super::{MS, Run, What};
use midflight_tasks::Nanos;
use midflight_tasks::executor::Executor;
use std::rc::Rc;

/// After the last fault every task must have ended: also hundreds through a queue of three, whose client waits up to a
/// second each time that it is full.
const HEALED_WITHIN: Nanos = 600_000 * MS;
/// After that nothing may be kept by anybody: completions for the dead are given up.
const CALM_WITHIN: Nanos = 60_000 * MS;
/// And then nothing must happen that was held to be over.
const AFTERMATH: Nanos = 500 * MS;
/// How often it is looked whether all is calm.
const LOOK_EVERY: Nanos = 100 * MS;

impl Run<'_> {
    /// Every task of a living caller ends; then nobody keeps anything, and nothing comes after.
    pub(super) fn heal(&mut self) -> Checked {
        let deadline = self.world.now() + HEALED_WITHIN;
        let findings = Rc::clone(&self.findings);
        self.world.run(deadline, |_| {
            let findings = findings.borrow();
            findings.broken.is_some() || findings.callers.open() == 0
        });
        self.so_far()?;
        self.all_told()?;
        let deadline = self.world.now() + CALM_WITHIN;
        while let Err(broken) = self.is_calm() {
            if self.world.now() >= deadline {
                return Err(broken);
            }
            self.run_until(self.world.now() + LOOK_EVERY)?;
        }
        self.run_until(self.world.now() + AFTERMATH)
    }

    fn all_told(&self) -> Checked {
        let callers = &self.findings.borrow().callers;
        let (open, seconds) = (callers.open(), HEALED_WITHIN / 1000 / MS);
        holds!(Heals, open == 0, "{open} tasks have no end after {seconds} s: {}", callers.waiting());
        Ok(())
    }

    /// Nothing runs or is kept, every slot asks.
    fn is_calm(&self) -> Checked {
        for (n, node) in self.executors.iter().enumerate() {
            let Some(executor) = self.world.executor(*node) else { continue };
            let kept = executor.unacknowledged();
            holds!(
                Heals,
                executor.running() == 0,
                "executor {n} runs {} tasks that nobody waits for",
                executor.running()
            );
            holds!(Heals, kept == 0, "executor {n} keeps {kept} completions that nobody acknowledges");
            let all = executor.registered() == self.trial.executors[n].slots || self.has_its_share(executor);
            holds!(Heals, all, "executor {n} has {} slots registered", executor.registered());
        }
        // A switch that all have left keeps what it has.
        let open = self.findings.borrow().open();
        holds!(Heals, open == 0 || self.switches.len() > 1, "{open} tasks are with the switch");
        Ok(())
    }

    /// T14: an executor that has fewer slots than it wants has its share of them at its switch: more would be eight times what is free.
    fn has_its_share(&self, executor: &Executor) -> bool {
        let known = self.switches.iter().zip(&self.trial.switches);
        let free = known.filter_map(|(node, spec)| Some(spec.slots - self.world.switch(*node)?.slots)).min();
        free.is_some_and(|free| executor.registered() >= 8 * free)
    }

    /// What endpoints have counted adds up; where nothing has befallen the cluster, nothing was done twice.
    pub(super) fn books(&self) -> Checked {
        let findings = self.findings.borrow();
        let calm = Excuses::of(self.trial).calm;
        let spoilt = self.trial.faults.iter().any(|fault| matches!(fault.what, What::Garbage(_)));
        let timeouts = self.trial.jobs.iter().flat_map(|job| &job.tasks).any(|task| task.timeout_ms > 0);
        if calm {
            holds!(T10, findings.requeued == 0, "{} tasks are queued again though all are well", findings.requeued);
            let starts = findings.callers.most_starts();
            holds!(T2, starts <= 1 || timeouts, "a task starts {starts} times though all are well");
        }
        for (n, node) in self.executors.iter().enumerate() {
            let Some(executor) = self.world.executor(*node) else { continue };
            let c = executor.counters();
            // One that returned to a switch may have met tasks there that it had left behind.
            let (running, kept) = (u64::from(executor.running()), executor.unacknowledged() as u64);
            let ended = (c.runs, c.finished) == (c.finished + running, c.delivered + c.given_up + kept);
            holds!(Books, ended, "executor {n} counts {c:?}");
            let well = (c.given_up, c.resets, c.switch_changes) == (0, 0, 0) && (c.rejected == 0 || spoilt);
            holds!(Heals, !calm || well, "executor {n} counts {c:?} though all are well");
        }
        for (n, node) in self.clients.iter().enumerate() {
            let Some(client) = self.world.client(*node) else { continue };
            let c = client.counters();
            let ended = c.submitted == c.completed + c.lost + c.cancelled && client.open() == 0;
            holds!(Books, ended, "client {n} counts {c:?}");
            let well = (c.resubmitted, c.gone, c.failovers, c.too_old, c.bad_answers) == (0, 0, 0, 0, 0);
            holds!(T9, !calm || well, "client {n} counts {c:?} though all are well");
        }
        for node in &self.switches {
            let sound = self.world.check_switch(*node);
            holds!(Sound, sound.is_ok(), "tasks_check.c, line {sound:?}");
        }
        Ok(())
    }
}
