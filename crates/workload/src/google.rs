//! Google ClusterData 2011 `task_events`: no header, 13 fields. A task runs from SCHEDULE to FINISH; one that was evicted, failed, killed
//! or lost has no duration and is counted. A job arrives at its first SUBMIT, or SCHEDULE if the file has none.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::lines::Reason;
use super::numbers::{integer, not_a_number, whole};
use super::priority::fold_google_priority;
use super::read::{Jobs, Parser, Skip};
use super::{Job, TaskSpec};

const SUBMIT: u64 = 0;
const SCHEDULE: u64 = 1;
const EVICT: u64 = 2;
const FAIL: u64 = 3;
const FINISH: u64 = 4;
const KILL: u64 = 5;
const LOST: u64 = 6;
const UPDATE_PENDING: u64 = 7;
const UPDATE_RUNNING: u64 = 8;

const BEFORE_US: u64 = 0;
/// The trace's value for "after the trace ended".
const AFTER_US: u64 = i64::MAX as u64;
struct OpenJob {
    arrival_ns: u64,
    tasks: Vec<TaskSpec>,
}

struct Running {
    since_ns: u64,
    priority: u8,
}

#[derive(Default)]
pub(super) struct Google {
    jobs: HashMap<u64, OpenJob>,
    running: HashMap<(u64, u64), Running>,
}

impl Parser for Google {
    fn line(&mut self, _first: bool, line: &str, jobs: &mut Jobs) -> Result<(), Reason> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [time, _missing, job, index, _machine, event, _user, _class, priority, _cpu, _memory, _disk, _different] =
            fields[..]
        else {
            return Err(Reason::Fields { wanted: "13", got: fields.len() });
        };
        let time_us = integer("time", time)?;
        let job = integer("job_id", job)?;
        let task = (job, integer("task_index", index)?);
        let event_type = integer("event_type", event)?;
        let priority = fold_google_priority(integer("priority", priority)?)
            .ok_or_else(|| not_a_number("priority", priority, "a priority from 0 to 11"))?;
        if time_us == BEFORE_US || time_us == AFTER_US {
            jobs.skip(Skip::OutsideTrace);
            return Ok(());
        }
        let time_ns = whole("time", time, 1_000)?;
        match event_type {
            SUBMIT => self.arrive(job, time_ns, jobs),
            SCHEDULE => {
                self.arrive(job, time_ns, jobs);
                if self.running.insert(task, Running { since_ns: time_ns, priority }).is_some() {
                    jobs.skip(Skip::NotFinished);
                } else {
                    jobs.remember(1);
                }
            }
            FINISH => return self.finish(task, time_ns, jobs),
            EVICT | FAIL | KILL | LOST => {
                if self.running.remove(&task).is_some() {
                    jobs.forget(1);
                    jobs.skip(Skip::NotFinished);
                }
            }
            UPDATE_PENDING | UPDATE_RUNNING => {}
            _ => return Err(not_a_number("event_type", event, "an event from 0 to 8")),
        }
        Ok(())
    }

    fn end(&mut self, jobs: &mut Jobs) {
        for _ in self.running.drain() {
            jobs.forget(1);
            jobs.skip(Skip::NotFinished);
        }
        let mut found: Vec<(u64, OpenJob)> = self.jobs.drain().collect();
        found.sort_unstable_by_key(|(id, job)| (job.arrival_ns, *id));
        for (_, job) in found {
            jobs.forget(1 + job.tasks.len() as u64);
            if !job.tasks.is_empty() {
                jobs.push(Job { arrival_ns: job.arrival_ns as i64, tasks: job.tasks });
            }
        }
    }
}

impl Google {
    fn arrive(&mut self, job: u64, time_ns: u64, jobs: &mut Jobs) {
        if let Entry::Vacant(entry) = self.jobs.entry(job) {
            entry.insert(OpenJob { arrival_ns: time_ns, tasks: Vec::new() });
            jobs.remember(1);
        }
    }

    fn finish(&mut self, task: (u64, u64), time_ns: u64, jobs: &mut Jobs) -> Result<(), Reason> {
        let Some(run) = self.running.remove(&task) else {
            jobs.skip(Skip::NotScheduled);
            return Ok(());
        };
        jobs.forget(1);
        let duration_ns = time_ns.checked_sub(run.since_ns).ok_or(Reason::EndsBeforeStart)?;
        // A running task has a job: SCHEDULE made it.
        if let Some(job) = self.jobs.get_mut(&task.0) {
            job.tasks.push(TaskSpec { duration_ns, priority: run.priority });
            jobs.remember(1);
        }
        Ok(())
    }
}
