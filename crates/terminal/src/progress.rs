//! The progress of a long job: a bar or a spinner on a terminal, a line now and then in a pipe. Always on stderr.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// If no task of a job has ended for this long, there may be no executors.
const HINT_AFTER: Duration = Duration::from_secs(5);
/// Between two lines in a pipe.
pub const LINE_EVERY: Duration = Duration::from_secs(5);
/// Empties the terminal's line, on which the bar is.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Progress, from any thread.
#[derive(Debug)]
pub struct Progress {
    /// It counts also where it is hidden, because stderr is no terminal.
    bar: ProgressBar,
    /// What is counted.
    what: &'static str,
    quiet: bool,
    /// Whether stderr is a terminal that shows the bar. One that is not shown is never locked: nobody is to wait for it.
    is_shown: bool,
    /// Whether somebody writes output: the bar is away meanwhile. Held for as long as the bar is drawn, never while output is
    /// written, because its reader may be slow.
    is_aside: Mutex<bool>,
    started: Instant,
    next_line: Mutex<Instant>,
    /// Whether the question for executors was asked.
    asked: AtomicBool,
}

impl Progress {
    /// Of `total` tasks. Shows nothing when `quiet`.
    pub fn tasks(total: u64, quiet: bool) -> Self {
        let template = "{bar:40} {human_pos}/{human_len} tasks, {per_sec}, {elapsed} (eta {eta})";
        Self::counted(Some(total), "tasks", template).hidden(quiet)
    }

    /// The same, which shows nothing if it is to be hidden.
    #[must_use]
    pub fn hidden(self, quiet: bool) -> Self {
        if quiet {
            self.bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self { quiet, is_shown: self.is_shown && !quiet, ..self }
    }

    /// Of so many things, if that is known; the bar is drawn by this template of indicatif's.
    pub fn counted(total: Option<u64>, what: &'static str, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(style).with_message(what);
        Self::new(bar, what, LINE_EVERY)
    }

    /// Of what cannot be counted; in a pipe the first line comes after this time.
    pub fn spinner(first_line: Duration) -> Self {
        Self::new(ProgressBar::new_spinner(), "", first_line)
    }

    fn new(bar: ProgressBar, what: &'static str, first_line: Duration) -> Self {
        let started = Instant::now();
        let (next_line, asked) = (Mutex::new(started + first_line), AtomicBool::new(false));
        let (is_shown, is_aside) = (!bar.is_hidden(), Mutex::new(false));
        Self { bar, what, quiet: false, is_shown, is_aside, started, next_line, asked }
    }

    /// So many were done before it began.
    pub fn skip(&self, done: u64) {
        self.bar.set_position(done);
        self.bar.reset_eta();
    }

    /// One more is done.
    pub fn advance(&self) {
        self.bar.inc(1);
        self.line(|| self.count());
    }

    /// One more is done, and this is its name.
    pub fn advance_by(&self, name: &str) {
        self.bar.set_message(name.to_owned());
        self.bar.inc(1);
        self.line(|| format!("{} ({name})", self.count()));
    }

    /// How far it has come, in words.
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

    /// A line in a pipe, if it is time for one.
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

    /// Call now and then while no task ends.
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

    /// Writes output, whose reader may be slow, without tearing the bar: it is away until the next words after that. Nobody waits
    /// for the writing. One thread writes.
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

    /// Takes the bar away.
    pub fn finish(self) {
        self.clear();
    }

    /// The same, where several threads hold it.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job of which no task has ended for too long.
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
            // All of this is done within the writing, as by another thread.
            let told = progress.aside(|| {
                progress.tell(|| "words".to_owned());
                progress.suspend(|| 7)
            });
            assert_eq!(told, 7);
            assert!(!*progress.is_aside());
        }
    }
}
