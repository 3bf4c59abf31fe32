//! Outcomes of a command's tasks, printed alike for Midflight and Sparrow.

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::signals::Shutdown;
use midflight_terminal::units;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// One day. Larger latencies count as this.
const LATENCY_MAX_US: u64 = 86_400_000_000;
/// Interval at which a waiting loop checks for signals.
pub const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Outcomes of all tasks. Latency is that of successful ones.
pub struct Ends {
    /// Tasks that succeeded.
    pub ok: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Tasks without an outcome.
    pub lost: u64,
    /// `None` where tasks cannot be cancelled.
    pub cancelled: Option<u64>,
    /// From submit to the outcome.
    pub latency_us: Histogram<u64>,
}

impl Ends {
    /// None yet.
    ///
    /// # Errors
    /// If there is no memory for a histogram.
    pub fn new(cancelled: Option<u64>) -> Result<Self> {
        let latency_us = Histogram::new_with_max(LATENCY_MAX_US, 3).context("a histogram of latencies")?;
        Ok(Self { ok: 0, failed: 0, lost: 0, cancelled, latency_us })
    }

    /// Whether all tasks succeeded.
    #[must_use]
    pub fn all_ok(&self) -> bool {
        self.failed + self.lost + self.cancelled.unwrap_or(0) == 0
    }

    /// Prints them. `until` names the end of a latency.
    ///
    /// # Errors
    /// If stdout cannot be written.
    pub fn print(&self, command: &str, until: &str, elapsed: Duration, json: Option<Measure>) -> Result<()> {
        let Self { ok, failed, lost, cancelled, latency_us } = self;
        let (seconds, rate) = (elapsed.as_secs_f64(), *ok as f64 / elapsed.as_secs_f64());
        let [p50, p99] = [0.5, 0.99].map(|quantile| latency_us.value_at_quantile(quantile));
        let Some(last) = json else {
            let cancelled = cancelled.map_or_else(String::new, |tasks| format!(", {tasks} cancelled"));
            let took = units::duration(elapsed);
            eprintln!("{ok} ok, {failed} failed, {lost} lost{cancelled} in {took} ({rate:.0} tasks/s)");
            if !latency_us.is_empty() {
                let [p50, p99, max] = [p50, p99, latency_us.max()].map(|us| units::time(us.saturating_mul(1_000)));
                eprintln!("submit to {until}: p50 {p50}, p99 {p99}, max {max}");
            }
            return Ok(());
        };
        let name = |what| format!("{command}.{what}");
        let counts = [("ok", Some(*ok)), ("failed", Some(*failed)), ("lost", Some(*lost)), ("cancelled", *cancelled)];
        let counts = counts.into_iter().filter_map(|(what, tasks)| Some(Measure::count(&name(what), tasks?, "tasks")));
        let times = [
            Measure::quantity(&name("seconds"), seconds, "s"),
            Measure::quantity(&name("tasks_per_s"), rate, "tasks/s"),
            Measure::count(&name("latency_p50_us"), p50, "us"),
            Measure::count(&name("latency_p99_us"), p99, "us"),
            last,
        ];
        Envelope::new(command, counts.chain(times).collect()).print(true)
    }
}

/// The latest shutdown step. Soon after the third signal the process exits.
///
/// # Errors
/// If signals cannot be caught.
pub fn interrupt_count() -> Result<Arc<AtomicU32>> {
    let interrupts = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&interrupts);
    Shutdown::new()?.each_step(move |step| seen.store(step, Ordering::Relaxed));
    Ok(interrupts)
}
