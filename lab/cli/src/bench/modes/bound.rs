//! The throughput that the replicas' CPU shares allow, from the costs of reads and writes.

use super::samples::Sample;
use super::workload::Mix;
use crate::median::median;

/// Microseconds of CPU per operation at one replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    pub(super) read: f64,
    pub(super) write_leader: f64,
    pub(super) write_follower: f64,
}

impl Costs {
    /// From loads of only reads, and of only writes.
    pub(super) fn of(reads: &[Sample], writes: &[Sample]) -> Self {
        let read = reads.iter().map(|sample| sample.cpu_us() / sample.done.reads as f64).collect();
        let (leader, follower) = writes
            .iter()
            .map(|sample| {
                let (leader, follower) = sample.leader_and_follower_us();
                (leader / sample.done.writes as f64, follower / sample.done.writes as f64)
            })
            .unzip();
        Self { read: median(read), write_leader: median(leader), write_follower: median(follower) }
    }

    /// Operations a second of N replicas with a share S of a CPU each, if operations use all of it and reads balance the load: N S / ((1-p)
    /// read + p (write_leader + (N-1) write_follower)).
    pub(super) fn bound(&self, replicas: usize, share: f64, mix: &Mix) -> f64 {
        let replicas = replicas as f64;
        let write = self.write_leader + (replicas - 1.0) * self.write_follower;
        replicas * share * 1e6 / ((1.0 - mix.writes) * self.read + mix.writes * write)
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::Done;
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_costs_are_those_of_the_measurement_and_the_bound_is_what_a_hand_computes() {
        let ms = Duration::from_millis;
        let reads = Sample {
            done: Done { reads: 90_000, writes: 0, seconds: 1.0 },
            cpu: vec![ms(100), ms(90), ms(80)],
            leader: 1,
        };
        let writes = Sample {
            done: Done { reads: 0, writes: 10_000, seconds: 1.0 },
            cpu: vec![ms(50), ms(100), ms(30)],
            leader: 1,
        };
        let costs = Costs::of(&[reads], &[writes]);
        assert_eq!(costs, Costs { read: 3.0, write_leader: 10.0, write_follower: 4.0 });
        // 3 × 0.1 × 10⁶ / (0.95 × 3 + 0.05 × (10 + 2 × 4)) = 300,000 / 3.75
        assert!((costs.bound(3, 0.1, &Mix::B) - 80_000.0).abs() < 1e-6);
        assert!((costs.bound(5, 0.1, &Mix::C) - 500_000.0 / 3.0).abs() < 1e-6);
    }
}
