//! The progress of a job: a bar on a terminal, a line now and then in a pipe. Always on stderr.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// If no task of a job has ended for this long, there may be no executors.
const HINT_AFTER: Duration = Duration::from_secs(5);
/// Between two lines in a pipe.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Progress of `total` tasks.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    total: u64,
    done: u64,
    next_line: Instant,
    /// When to ask whether there are executors.
    hint: Option<Instant>,
}

impl Progress {
    /// Shows nothing when `quiet`.
    pub fn new(total: u64, quiet: bool) -> Self {
        let bar = (std::io::stderr().is_terminal() && !quiet).then(|| {
            let template = "{bar:40} {human_pos}/{human_len} tasks, {per_sec}, {elapsed} (eta {eta})";
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(total).with_style(style)
        });
        let first = if quiet { Duration::MAX } else { LINE_EVERY };
        let next_line = Instant::now().checked_add(first).unwrap_or_else(far);
        Self { bar, total, done: 0, next_line, hint: Some(Instant::now() + HINT_AFTER) }
    }

    /// One more task has ended.
    pub fn advance(&mut self) {
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        } else if Instant::now() >= self.next_line {
            eprintln!("{}/{} tasks", self.done, self.total);
            self.next_line = Instant::now() + LINE_EVERY;
        }
    }

    /// Call now and then while nothing ends.
    pub fn wait(&mut self) {
        if self.done == 0 && self.hint.is_some_and(|at| Instant::now() >= at) {
            self.hint = None;
            let question = "nothing has ended yet: does an executor with the wanted resources serve this switch?";
            self.suspend(|| eprintln!("midflight: {question} see `midflight status`"));
        }
    }

    /// Writes to stdout or stderr without tearing the bar.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A time so late that it never comes.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(100 * 365 * 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job of which no task has ended for too long.
    fn overdue() -> Progress {
        Progress { hint: Some(Instant::now()), ..Progress::new(2, true) }
    }

    #[test]
    fn the_question_for_executors_is_asked_once_and_only_while_nothing_ends() {
        let mut silent = overdue();
        silent.wait();
        assert_eq!(silent.hint, None);
        let mut moving = overdue();
        moving.advance();
        moving.wait();
        assert!(moving.hint.is_some());
    }
}
