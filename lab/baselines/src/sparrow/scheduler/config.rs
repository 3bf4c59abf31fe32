use super::super::{ConfigError, RetryConfig};
use std::net::SocketAddr;

/// A scheduler's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// The workers and their slot counts. Unused without probing.
    pub workers: Vec<(SocketAddr, u32)>,
    /// Reservations per task: 1 to 64. Default 2.
    pub ratio: f64,
    /// `false`: no reservations, slots poll. Default `true`.
    pub probing: bool,
    /// Seed of all random choices.
    pub seed: u64,
    /// Retry policy.
    pub retry: RetryConfig,
}

impl SchedulerConfig {
    /// Uses the papers' values.
    #[must_use]
    pub fn new(seed: u64, workers: Vec<(SocketAddr, u32)>) -> Self {
        Self { workers, ratio: 2.0, probing: true, seed, retry: RetryConfig::default() }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let executors: u64 = self.workers.iter().map(|&(_, slots)| u64::from(slots)).sum();
        if executors == 0 && self.probing {
            return Err(ConfigError::NoExecutors);
        }
        let out = |what, allowed| Err(ConfigError::OutOfBounds { what, allowed });
        if executors > 1 << 24 {
            return out("the number of executors", "at most 16,777,216");
        }
        if !(1.0..=64.0).contains(&self.ratio) {
            return out("ratio", "1 to 64");
        }
        self.retry.check()
    }
}
