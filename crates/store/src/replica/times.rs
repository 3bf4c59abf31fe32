//! Histograms of how long operations take.

use midflight_endpoint::Nanos;
use midflight_wire::store::Command;

/// Buckets of [`Times`]; the last one begins at 2^26 us, about a minute.
pub const TIME_BUCKETS: usize = 28;

/// A histogram of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Bucket b counts times of 2^(b-1) to 2^b us, bucket 0 those below 1 us, the last one all longer times.
    pub buckets: [u64; TIME_BUCKETS],
    /// Sum in nanoseconds.
    pub sum_ns: u64,
}

impl Times {
    /// Adds a time.
    pub fn add(&mut self, took: Nanos) {
        let bucket = (u64::BITS - (took / 1_000).leading_zeros()) as usize;
        self.buckets[bucket.min(TIME_BUCKETS - 1)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(took);
    }
}

/// Durations since the replica started, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaTimes {
    /// The driver's syncs of the disk.
    pub sync: Times,
    /// From appending a batch of entries to applying it.
    pub apply: Times,
    /// From a READ to its answer.
    pub read: Times,
    /// From a WRITE to the leader's answer, by command in the order of [`ReplicaTimes::COMMANDS`].
    pub write: [Times; Self::COMMANDS.len()],
}

impl ReplicaTimes {
    /// Commands of WRITEs, with their names.
    pub const COMMANDS: [(Command, &str); 9] = [
        (Command::Open, "open"),
        (Command::Put, "put"),
        (Command::Delete, "delete"),
        (Command::Cas, "cas"),
        (Command::Incr, "incr"),
        (Command::Create, "create"),
        (Command::Update, "update"),
        (Command::Stage, "stage"),
        (Command::Transact, "transact"),
    ];

    pub(super) fn wrote(&mut self, command: Command, took: Nanos) {
        let index = Self::COMMANDS.iter().position(|(known, _)| *known == command);
        if let Some(times) = index.and_then(|index| self.write.get_mut(index)) {
            times.add(took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_times() {
        assert_eq!(ReplicaTimes::COMMANDS.map(|(command, _)| command), Command::ALL);
    }

    #[test]
    fn a_time_is_in_its_bucket() {
        let bucket = |took: Nanos| {
            let mut times = Times::default();
            times.add(took);
            times.buckets.iter().position(|&count| count == 1)
        };
        assert_eq!([0, 999, 1_000, 1_999, 2_000].map(bucket), [Some(0), Some(0), Some(1), Some(1), Some(2)]);
        assert_eq!(bucket(u64::MAX), Some(TIME_BUCKETS - 1));
    }
}
