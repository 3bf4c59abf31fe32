//! `.tr`: one job per line, blank-separated: arrival (seconds), number of tasks, mean duration, then each duration.

use super::lines::Reason;
use super::numbers::{integer, seconds};
use super::read::{Jobs, Parser};
use super::{Job, TaskSpec};

pub(super) struct Tr;

impl Parser for Tr {
    fn line(&mut self, _first: bool, line: &str, jobs: &mut Jobs) -> Result<(), Reason> {
        let mut fields = line.split_ascii_whitespace();
        let (Some(arrival), Some(count), Some(mean)) = (fields.next(), fields.next(), fields.next()) else {
            let got = line.split_ascii_whitespace().count();
            return Err(Reason::Fields { wanted: "at least 4", got });
        };
        let arrival_ns = seconds("arrival", arrival)? as i64; // at most 2^62
        let said = jobs.job_size(integer("task count", count)?)?;
        seconds("mean duration", mean)?;
        let mut tasks = Vec::new();
        for field in fields.by_ref().take(said as usize) {
            tasks.push(TaskSpec { duration_ns: seconds("duration", field)?, priority: 0 });
        }
        let listed = tasks.len() as u64 + fields.count() as u64;
        if listed != said || said == 0 {
            return Err(Reason::Count { said, listed });
        }
        jobs.push(Job { arrival_ns, tasks });
        Ok(())
    }
}
