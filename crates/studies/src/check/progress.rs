//! The progress of a search that takes longer than a moment: a spinner on a terminal, a line now and then in a pipe. On
//! stderr.

use indicatif::ProgressBar;
use midflight_rmt::tasks::check::Watch;
use midflight_terminal::units;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A search that ends sooner shows no progress.
const AFTER: Duration = Duration::from_secs(2);
/// Between two lines in a pipe.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// Runs a search and shows its progress.
pub(super) fn shown<T>(name: &str, watch: &Watch, search: impl FnOnce() -> T) -> T {
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| report(name, watch, end));
        let result = search();
        drop(ended);
        result
    })
}

/// Until the other end of the channel is gone.
fn report(name: &str, watch: &Watch, end: Receiver<()>) {
    let (terminal, mut next) = (std::io::stderr().is_terminal(), Instant::now() + AFTER);
    let mut spinner = None;
    while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        if Instant::now() < next {
            continue;
        }
        let line = format!("{name}: {} states", units::thousands(watch.states()));
        if terminal {
            let spinner = spinner.get_or_insert_with(ProgressBar::new_spinner);
            spinner.set_message(line);
            spinner.tick();
        } else {
            eprintln!("{line}");
            next = Instant::now() + LINE_EVERY;
        }
    }
    if let Some(spinner) = spinner {
        spinner.finish_and_clear();
    }
}
