//! Runs several cells at a time, each as `midflight-lab sim cell --with-parent`.

use super::INTERRUPTED;
use super::store::{Kept, Store};
use crate::processes::ours;
use crate::sim::traces::VARIABLE;
use anyhow::{Context, Result, anyhow};
use midflight_papers::experiment::Experiment;
use midflight_terminal::progress::Progress;
use midflight_terminal::signals::interrupted_flag;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub name: String,
    pub cell: Experiment,
}

/// Use one pool for several lists, because a signal may come between two.
#[derive(Debug)]
pub(crate) struct Pool {
    parallel: usize,
    interrupted: Arc<AtomicBool>,
}

impl Pool {
    /// The first signal stops all cells; a second one ends this process.
    pub(crate) fn new(parallel: usize) -> Result<Self> {
        Ok(Self { parallel, interrupted: interrupted_flag()? })
    }

    /// Runs the cells that the store lacks. Returns all results in the order of `jobs`.
    ///
    /// # Errors
    /// Of the first cell that fails, after the running ones have ended; [`INTERRUPTED`] after a signal.
    pub(crate) fn run(&self, jobs: &[Job], store: &Store) -> Result<Vec<Kept>> {
        let before = store.results()?;
        let missing: Vec<&Job> = jobs.iter().filter(|job| store.find(&before, &job.cell).is_none()).collect();
        let outcome = self.run_missing(&missing, store, progress(jobs.len(), jobs.len() - missing.len()));
        // Also after an error.
        let packed = store.pack();
        outcome?;
        let results = packed?;
        let of = |job: &Job| store.find(&results, &job.cell).cloned();
        jobs.iter()
            .map(|job| of(job).with_context(|| format!("{}: its result was deleted meanwhile", job.name)))
            .collect()
    }

    fn run_missing(&self, missing: &[&Job], store: &Store, progress: Progress) -> Result<()> {
        let (next, first_error) = (AtomicUsize::new(0), Mutex::new(None));
        let failed = || first_error.lock().unwrap_or_else(PoisonError::into_inner);
        std::thread::scope(|scope| {
            for _ in 0..self.parallel.clamp(1, missing.len().max(1)) {
                scope.spawn(|| {
                    while !self.interrupted.load(Relaxed) && failed().is_none() {
                        let Some(job) = missing.get(next.fetch_add(1, Relaxed)) else { break };
                        let outcome = run_child(job, store, &self.interrupted);
                        progress.advance_by(&job.name);
                        if let Err(error) = outcome {
                            failed().get_or_insert(error);
                        }
                    }
                });
            }
        });
        progress.finish();
        if self.interrupted.load(Relaxed) {
            return Err(INTERRUPTED.into());
        }
        failed().take().map_or(Ok(()), Err)
    }
}

fn run_child(job: &Job, store: &Store, interrupted: &AtomicBool) -> Result<()> {
    let mut command = ours()?;
    command.args(["sim", "cell", "--with-parent", "--store"]).arg(store.directory());
    if let Some(traces) = store.traces() {
        command.env(VARIABLE, traces);
    }
    // In its own process group, so that Ctrl-C reaches only this process. It exits with this process, because its stdin closes.
    let mut child = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let spec = serde_json::to_string(&job.cell)? + "\n";
    let mut input = child.stdin.take().context("a child without stdin")?;
    // Its exit status explains a write error.
    let _ = input.write_all(spec.as_bytes());
    let complaint = child.stderr.take().map(|mut stderr| {
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        })
    });
    let status = wait(&mut child, interrupted)?;
    drop(input);
    let said = complaint.and_then(|thread| thread.join().ok()).unwrap_or_default();
    match status {
        Some(status) if status.success() => Ok(()),
        None => Err(INTERRUPTED.into()),
        Some(status) => {
            let line = complaint_in(&said).unwrap_or_else(|| died(status));
            Err(anyhow!("{}: {line}", job.name))
        }
    }
}

/// The last error that a cell's process printed; for a panic, its position.
fn complaint_in(said: &str) -> Option<String> {
    let of = |mark: &str| said.lines().rev().find(|line| line.contains(mark));
    let line = of("error: ").or_else(|| of("panicked at")).or_else(|| said.lines().last())?;
    Some(line.trim_start_matches("error: ").to_owned())
}

fn died(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(libc::SIGKILL) => "killed, perhaps for want of memory: run fewer at a time (-j)".into(),
        _ => status.to_string(),
    }
}

/// `None` after an interruption, which stops the child.
fn wait(child: &mut Child, interrupted: &AtomicBool) -> Result<Option<std::process::ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a cell")? {
            return Ok(Some(status));
        }
        if interrupted.load(Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn progress(total: usize, kept: usize) -> Progress {
    if kept > 0 {
        eprintln!("{kept} of {total} cells have been run before");
    }
    let template = "{bar:40} {pos}/{len} cells, {elapsed} (eta {eta}) {msg}";
    let progress = Progress::counted(Some(total as u64), "cells", template);
    progress.skip(kept as u64);
    progress
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::{cell, store};
    use super::*;

    /// A signal between two lists, for example while a figure is drawn, was lost.
    #[test]
    fn a_signal_before_a_list_keeps_its_cells_from_running() {
        let store = store("pool");
        let pool = Pool { parallel: 2, interrupted: Arc::new(AtomicBool::new(true)) };
        let jobs = [Job { name: "one".into(), cell: cell(1) }];
        let said = pool.run(&jobs, &store).unwrap_err();
        assert_eq!(said.to_string(), INTERRUPTED.0);
        assert!(store.results().unwrap().get(&cell(1)).is_none());
        std::fs::remove_dir_all(store.directory()).unwrap();
    }

    #[test]
    fn of_what_a_cell_said_the_error_is_told_and_not_what_came_around_it() {
        let said = "WARN something\nerror: load.file x.tr: No such file\n";
        assert_eq!(complaint_in(said).as_deref(), Some("load.file x.tr: No such file"));
        let panic = "thread 'main' panicked at a.rs:1:2:\noverflow\nnote: run with RUST_BACKTRACE=1\n";
        assert_eq!(complaint_in(panic).as_deref(), Some("thread 'main' panicked at a.rs:1:2:"));
        assert_eq!(complaint_in(""), None);
    }
}
