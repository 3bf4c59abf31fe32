//! Scheduling delay and its parts, as histograms.

use hdrhistogram::Histogram;

/// Times of one task, in nanoseconds of one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// When it was submitted to the client.
    pub submitted_ns: u64,
    /// When the client first sent it.
    pub sent_ns: u64,
    /// When the executor's slot asked for a task; `None` if its clock is another one.
    pub asked_ns: Option<u64>,
    /// When an executor started it.
    pub started_ns: u64,
    /// When its function ended.
    pub ended_ns: u64,
    /// From acceptance by the switch to assignment. By T6, no suitable executor was free in that time.
    pub queueing_ns: u64,
    /// Priority level; 1 is the highest.
    pub level: u8,
}

impl Passage {
    /// From submission to start, in nanoseconds.
    pub fn delay_ns(&self) -> u64 {
        self.started_ns.saturating_sub(self.submitted_ns)
    }

    /// Wait for the client's window, in nanoseconds: large jobs are spread over time.
    pub fn pacing_ns(&self) -> u64 {
        self.sent_ns.saturating_sub(self.submitted_ns)
    }

    /// An upper bound, in nanoseconds, of the time to start once the switch knew both the task and an executor: the delay without pacing
    /// and queueing. If the task queued, the executor came last, so at most the time since it asked.
    pub fn dispatch_ns(&self) -> u64 {
        let rest = self.delay_ns().saturating_sub(self.pacing_ns() + self.queueing_ns);
        match self.asked_ns {
            Some(asked_ns) if self.queueing_ns > 0 => rest.min(self.started_ns.saturating_sub(asked_ns)),
            _ => rest,
        }
    }
}

/// A distribution of nanoseconds with three significant digits.
#[derive(Clone, Debug)]
pub struct Distribution(Histogram<u64>);

impl Default for Distribution {
    fn default() -> Self {
        // Three digits are valid: the crate accepts 0 to 5.
        #[expect(clippy::unwrap_used, reason = "the only error is a number of digits above 5")]
        Self(Histogram::new(3).unwrap())
    }
}

impl Distribution {
    /// Adds a value, in nanoseconds.
    pub fn record(&mut self, ns: u64) {
        // The histogram grows as needed; a value beyond its limit counts as the largest one.
        if self.0.record(ns).is_err() {
            self.0.saturating_record(ns);
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The nanoseconds that a share `quantile` (0 to 1) of the values do not exceed; 0 if empty.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile).min(self.0.max())
    }

    /// The largest value.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }
}

/// The delays of a set of tasks, with their parts.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// From the call of submit to the start.
    pub delay: Distribution,
    /// Held back by the client's window.
    pub pacing: Distribution,
    /// No suitable executor was free.
    pub queueing: Distribution,
    /// The rest: what the system adds.
    pub dispatch: Distribution,
}

impl Delays {
    /// Adds a task's delays.
    pub fn record(&mut self, passage: &Passage) {
        self.delay.record(passage.delay_ns());
        self.pacing.record(passage.pacing_ns());
        self.queueing.record(passage.queueing_ns);
        self.dispatch.record(passage.dispatch_ns());
    }

    /// The distributions with their names, the total first.
    pub fn parts(&self) -> [(&'static str, &Distribution); 4] {
        [("delay", &self.delay), ("pacing", &self.pacing), ("queueing", &self.queueing), ("dispatch", &self.dispatch)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatch_is_the_delay_less_pacing_and_queueing() {
        let (submitted_ns, sent_ns, started_ns, queueing_ns) = (100, 200, 5_100, 4_000);
        let passage = Passage { submitted_ns, sent_ns, started_ns, queueing_ns, ..Passage::default() };
        assert_eq!((passage.delay_ns(), passage.dispatch_ns()), (5_000, 900));
        // The task queued, so it waited for the executor that asked 300 ns before the start.
        assert_eq!(Passage { asked_ns: Some(4_800), ..passage }.dispatch_ns(), 300);
        assert_eq!(Passage { asked_ns: Some(4_800), queueing_ns: 0, ..passage }.dispatch_ns(), 4_900);
        // The switch counts whole microseconds; rounding must not make the dispatch negative.
        assert_eq!(Passage { queueing_ns: 6_000, ..passage }.dispatch_ns(), 0);
    }

    #[test]
    fn quantiles_are_of_what_was_recorded() {
        let mut distribution = Distribution::default();
        (1..=100).for_each(|us| distribution.record(us * 1_000));
        assert_eq!(distribution.quantile_ns(0.5) / 100, 500);
        assert_eq!(distribution.max_ns() / 100, 1_000);
    }

    #[test]
    fn an_empty_distribution_has_zeros() {
        let empty = Distribution::default();
        assert_eq!((empty.count(), empty.quantile_ns(0.99)), (0, 0));
    }
}
