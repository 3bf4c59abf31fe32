//! The `batch_task` table of Alibaba's 2017 trace: a header line, then `create_s,end_s,job,task,instances,status,cpus,memory`. A row is a
//! job of `instances` tasks that run for `end − create`; times before the trace's zero are negative. Only Terminated rows have a duration;
//! the others are skipped and counted.

use super::lines::Reason;
use super::numbers::{integer, signed};
use super::read::{Jobs, Parser, Skip};

const SECOND_NS: u64 = 1_000_000_000;

pub(super) struct Alibaba;

impl Parser for Alibaba {
    fn line(&mut self, first: bool, line: &str, jobs: &mut Jobs) -> Result<(), Reason> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [create, end, _job, _task, instances, status, _cpus, _memory] = fields[..] else {
            return Err(Reason::Fields { wanted: "8", got: fields.len() });
        };
        if first && create.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Ok(());
        }
        if status != "Terminated" {
            jobs.skip(Skip::NotTerminated);
            return Ok(());
        }
        if create.is_empty() || end.is_empty() || instances.is_empty() {
            jobs.skip(Skip::EmptyField);
            return Ok(());
        }
        let arrival_ns = signed("create_s", create, SECOND_NS)?;
        let end_ns = signed("end_s", end, SECOND_NS)?;
        if end_ns < arrival_ns {
            return Err(Reason::EndsBeforeStart);
        }
        let duration_ns = end_ns.abs_diff(arrival_ns);
        jobs.push_equal(arrival_ns, duration_ns, integer("instances", instances)?)
    }
}
