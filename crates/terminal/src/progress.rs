//! The progress of a long job, on stderr: a bar on a terminal, an occasional line in a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// If no task of a job ends within this time, there may be no executors.
const HINT_AFTER: Duration = Duration::from_secs(5);
/// Interval between two lines in a pipe.
pub const LINE_EVERY: Duration = Duration::from_secs(5);
/// Clears the terminal's line, where the bar is.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// A progress display that any thread may update.
#[derive(Debug)]
pub struct Progress {
    /// Counts even if it is hidden because stderr is no terminal.
    bar: ProgressBar,
    what: &'static str,
    quiet: bool,
    /// A hidden bar is never locked, so no thread waits for it.
    is_shown: bool,
    /// Whether the bar is hidden while a thread writes output. Never locked during the write, because its reader may be slow.
    is_aside: Mutex<bool>,
    started: Instant,
    next_line: Mutex<Instant>,
    asked: AtomicBool,
}

impl Progress {
    /// Progress of `total` tasks. Shows nothing if `quiet`.
    pub fn tasks(total: u64, quiet: bool) -> Self {
        let template = "{bar:40} {human_pos}/{human_len} tasks, {per_sec}, {elapsed} (eta {eta})";
        Self::counted(Some(total), "tasks", template).hidden(quiet)
    }

    /// Hides the display if `quiet`.
    #[must_use]
    pub fn hidden(self, quiet: bool) -> Self {
        if quiet {
            self.bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self { quiet, is_shown: self.is_shown && !quiet, ..self }
    }

    /// Counts to `total`, if that is known; `template` is one of indicatif's.
    pub fn counted(total: Option<u64>, what: &'static str, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(style).with_message(what);
        Self::new(bar, what, LINE_EVERY)
    }

    /// For work that cannot be counted; in a pipe the first line appears after `first_line`.
    pub fn spinner(first_line: Duration) -> Self {
        Self::new(ProgressBar::new_spinner(), "", first_line)
    }

    fn new(bar: ProgressBar, what: &'static str, first_line: Duration) -> Self {
        let started = Instant::now();
        let (next_line, asked) = (Mutex::new(started + first_line), AtomicBool::new(false));
        let (is_shown, is_aside) = (!bar.is_hidden(), Mutex::new(false));
        Self { bar, what, quiet: false, is_shown, is_aside, started, next_line, asked }
    }

    /// Counts `done` that ended earlier.
    pub fn skip(&self, done: u64) {
        self.bar.set_position(done);
        self.bar.reset_eta();
    }

    /// Counts one more.
    pub fn advance(&self) {
        self.bar.inc(1);
        self.line(|| self.count());
    }

    /// Counts one more and shows its name.
    pub fn advance_by(&self, name: &str) {
        self.bar.set_message(name.to_owned());
        self.bar.inc(1);
        self.line(|| format!("{} ({name})", self.count()));
    }

    /// Shows a message.
    pub fn tell(&self, words: impl Fn() -> String) {
        if self.is_shown && !*self.is_aside() {
            self.bar.set_message(words());
            self.bar.tick();
        }
        self.line(words);
    }

    fn count(&self) -> String {
        let of = self.bar.length().map_or_else(String::new, |total| format!("/{total}"));
        format!("{}{of} {}", self.bar.position(), self.what)
    }

    fn line(&self, words: impl FnOnce() -> String) {
        if self.quiet || self.is_shown {
            return;
        }
        let mut next = self.next_line.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() >= *next {
            eprintln!("{}", words());
            *next = Instant::now() + LINE_EVERY;
        }
    }

    /// To be called periodically while no task ends.
    pub fn wait(&self) {
        let overdue = self.bar.position() == 0 && self.started.elapsed() >= HINT_AFTER;
        if overdue && !self.asked.swap(true, Ordering::Relaxed) {
            let question = "nothing has ended yet: does an executor with the wanted resources serve this switch?";
            self.suspend(|| eprintln!("midflight: {question} see `midflight status`"));
        }
    }

    /// Writes a few words to stderr without tearing the bar.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        if !self.is_shown {
            return write();
        }
        let is_aside = self.is_aside();
        if *is_aside { write() } else { self.bar.suspend(write) }
    }

    /// Hides the bar until the next message after `write`, whose reader may be slow. No other thread waits for it. Only one thread may
    /// write.
    pub fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        if !self.is_shown {
            return write();
        }
        let mut is_aside = self.is_aside();
        *is_aside = true;
        crate::stderr::write(format_args!("{CLEAR_LINE}"), "");
        drop(is_aside);
        let written = write();
        *self.is_aside() = false;
        written
    }

    fn is_aside(&self) -> MutexGuard<'_, bool> {
        self.is_aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.clear();
    }

    /// Removes the bar, where several threads share it.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overdue() -> Option<Progress> {
        Some(Progress { started: Instant::now().checked_sub(HINT_AFTER)?, ..Progress::tasks(2, true) })
    }

    #[test]
    fn the_question_for_executors_is_asked_once_and_only_while_nothing_ends() {
        let (Some(silent), Some(moving)) = (overdue(), overdue()) else { return };
        silent.wait();
        assert!(silent.asked.load(Ordering::Relaxed));
        moving.advance();
        moving.wait();
        assert!(!moving.asked.load(Ordering::Relaxed));
        assert_eq!(moving.count(), "1/2 tasks", "it counts without a terminal");
    }

    #[test]
    fn nobody_waits_for_an_output_that_is_being_written() {
        let hidden = Progress::counted(None, "commands", "{wide_msg}").hidden(true);
        let shown = Progress { is_shown: true, ..Progress::counted(None, "commands", "{wide_msg}").hidden(true) };
        for progress in [hidden, shown] {
            // Runs within the write, as if another thread called it.
            let told = progress.aside(|| {
                progress.tell(|| "words".to_owned());
                progress.suspend(|| 7)
            });
            assert_eq!(told, 7);
            assert!(!*progress.is_aside());
        }
    }
}
