//! The progress of a campaign on several threads: a bar on a terminal, a line now and then in a pipe. Always on stderr.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines in a pipe.
const LINE_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Seeds {
    what: &'static str,
    total: u64,
    done: AtomicU64,
    bar: Option<ProgressBar>,
    next_line: Mutex<Instant>,
}

impl Seeds {
    /// `total` is 0 where it is not known.
    pub(super) fn new(total: u64, what: &'static str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} {msg}, {per_sec}, {elapsed}");
            let bar = if total > 0 { ProgressBar::new(total) } else { ProgressBar::no_length() };
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what)
        });
        Self { what, total, done: AtomicU64::new(0), bar, next_line: Mutex::new(Instant::now() + LINE_EVERY) }
    }

    /// One more is done.
    pub(super) fn advance(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
            return;
        }
        let mut next = self.next_line.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() >= *next {
            let of = if self.total > 0 { format!("/{}", self.total) } else { String::new() };
            eprintln!("{done}{of} {}", self.what);
            *next = Instant::now() + LINE_EVERY;
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
