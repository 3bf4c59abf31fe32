//! Draconis: one job per line, `job_id,arrival_us,task_runtime_us,num_tasks`; a header line may come first.

use super::lines::Reason;
use super::numbers::{integer, whole};
use super::read::{Jobs, Parser};

pub(super) struct Draconis;

impl Parser for Draconis {
    fn line(&mut self, first: bool, line: &str, jobs: &mut Jobs) -> Result<(), Reason> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [_job_id, arrival, runtime, count] = fields[..] else {
            return Err(Reason::Fields { wanted: "4", got: fields.len() });
        };
        if first && arrival == "arrival_us" {
            return Ok(());
        }
        let arrival_ns = whole("arrival_us", arrival, 1_000)? as i64; // at most 2^62
        let duration_ns = whole("task_runtime_us", runtime, 1_000)?;
        jobs.push_equal(arrival_ns, duration_ns, integer("num_tasks", count)?)
    }
}
