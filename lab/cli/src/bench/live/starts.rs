//! Starts of tasks: Midflight's executors report them in results, Sparrow's workers at exit.

use crate::baseline::sparrow::Submitted;
use anyhow::{Context, Result, ensure};
use midflight_endpoint::Nanos;
use std::collections::HashMap;

pub(super) use crate::baseline::sparrow::Start;

/// One task's times, by the clock that all processes of this machine share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begun {
    pub submitted: Nanos,
    pub started: Nanos,
    /// How long it ran, if known.
    pub ran: Option<Nanos>,
}

impl Begun {
    pub(super) fn delay(&self) -> Nanos {
        self.started.saturating_sub(self.submitted)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub client: u64,
    pub job: Submitted,
    pub tasks: u32,
}

/// A worker's last output: a line of four numbers for each task, and one of words.
pub(super) fn parse(text: &str) -> Result<Vec<Start>> {
    let mut starts = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let &[client, job, tid, at] = words.as_slice() else { continue };
        let wrong = || format!("a worker said {line:?}");
        starts.push(Start {
            client: client.parse().with_context(wrong)?,
            job: job.parse().with_context(wrong)?,
            tid: tid.parse().with_context(wrong)?,
            at: at.parse().with_context(wrong)?,
        });
    }
    Ok(starts)
}

/// Each task must have started exactly once.
pub(super) fn join(given: &[Given], starts: &[Start]) -> Result<Vec<Begun>> {
    let jobs: HashMap<(u64, u32), &Given> = given.iter().map(|given| ((given.client, given.job.job), given)).collect();
    let mut begun = HashMap::new();
    for start in starts {
        let key = (start.client, start.job);
        let job = jobs
            .get(&key)
            .filter(|job| start.tid < job.tasks)
            .context("a worker started a task that no client submitted")?;
        let once =
            begun.insert((key, start.tid), Begun { submitted: job.job.at, started: start.at, ran: None }).is_none();
        ensure!(once, "a task was started twice");
    }
    let wanted: u64 = given.iter().map(|given| u64::from(given.tasks)).sum();
    ensure!(begun.len() as u64 == wanted, "workers started {} of {wanted} tasks", begun.len());
    Ok(begun.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(job: u32, at: Nanos, tasks: u32) -> Given {
        Given { client: 7, job: Submitted { job, at }, tasks }
    }

    #[test]
    fn a_task_s_way_is_put_together_from_both_ends() {
        let starts = parse("7 0 1 150\n7 1 0 260\n7 0 0 120\n3 reservations, 0 cancelled; 3 tasks run\n").unwrap();
        let mut begun = join(&[given(0, 100, 2), given(1, 200, 1)], &starts).unwrap();
        begun.sort_unstable_by_key(|begun| begun.started);
        let ways: Vec<_> = begun.iter().map(|begun| (begun.submitted, begun.started)).collect();
        assert_eq!(ways, [(100, 120), (100, 150), (200, 260)]);
    }

    #[test]
    fn what_was_not_started_once_is_an_error() {
        let message = |text: &str| join(&[given(0, 100, 2)], &parse(text).unwrap()).unwrap_err().to_string();
        assert!(message("7 0 0 120").contains("1 of 2 tasks"));
        assert!(message("7 0 0 120\n7 0 0 130").contains("twice"));
        assert!(message("8 0 0 120").contains("no client submitted"));
        assert!(message("7 0 2 120").contains("no client submitted"));
        assert!(parse("7 0 x 120").is_err());
    }
}
