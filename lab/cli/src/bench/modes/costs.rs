//! CPU time of reads and writes, and the throughput that the replicas' shares allow by it.

use super::plan::{Part, REPLICAS};
use super::samples::{Sample, Samples};
use super::workload::Mix;
use crate::median::median;
use midflight_control::store::ReadMode;
use midflight_dataplane::store::Policy;

const STORE: &str = "cost";
const ALONE: &str = "cost_alone";
const READS: &str = "cost.reads";
const WRITES: &str = "cost.writes";
const IDLE: &str = "cost.idle";
const NONE: &str = "cost.none";
/// Clients who only write: enough to keep all replicas busy, and no write waits for so long that it is repeated.
const WRITERS: u32 = 64;

/// Stores whose measurements give the costs: of a set, and of one replica.
pub(super) fn parts() -> [Part; 2] {
    let part = |name: &str, mode, replicas, mixes| Part {
        name: name.into(),
        mode,
        policy: Policy::LeaderAvoidance,
        replicas,
        slow: 1.0,
        mixes,
    };
    let mix = |name: &str, clients, writes| Mix { clients, ..Mix::new(name, writes) };
    let (none, writes) = (mix(NONE, 0, 0.0), mix(WRITES, WRITERS, 1.0));
    let of_set = vec![none.clone(), Mix::new(READS, 0.0), writes.clone(), mix(IDLE, 1, 0.0)];
    [part(STORE, ReadMode::Flair, REPLICAS, of_set), part(ALONE, ReadMode::Unreplicated, 1, vec![none, writes])]
}

/// Microseconds of CPU per operation at one replica, beyond what it takes without clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    /// Share of a CPU that a replica takes without clients.
    pub(super) background: f64,
    /// The same of the only one.
    pub(super) background_alone: f64,
    pub(super) read: f64,
    /// What a read takes longer for a replica that sleeps.
    pub(super) wake_up: f64,
    pub(super) write_leader: f64,
    pub(super) write_follower: f64,
    /// Without replicas.
    pub(super) write_alone: f64,
    /// Latency of a read by the only client.
    pub(super) idle: f64,
}

impl Costs {
    pub(super) fn measured(samples: &Samples) -> Self {
        let idle = median(samples.each(IDLE, STORE, |done| done.latency(0.5) * 1e6));
        let of = |workload, store| samples.of(workload, store);
        let background = |store| median(of(NONE, store).iter().map(Sample::share).collect());
        let costs = Self::of(background(STORE), of(READS, STORE), of(WRITES, STORE));
        let of_one_client = Self::of(background(STORE), of(IDLE, STORE), &[]);
        let wake_up = (of_one_client.read - costs.read).max(0.0);
        let alone = Self::of(background(ALONE), &[], of(WRITES, ALONE));
        Self { idle, wake_up, write_alone: alone.write_leader, background_alone: alone.background, ..costs }
    }

    /// From loads of only reads, and of only writes.
    fn of(background: f64, reads: &[Sample], writes: &[Sample]) -> Self {
        let each = |samples: &[Sample], us: fn(&Sample) -> f64, replicas: fn(&Sample) -> usize| {
            let of = |sample: &Sample| {
                let without = background * sample.done.seconds * 1e6 * replicas(sample) as f64;
                (us(sample) - without) / (sample.done.reads + sample.done.writes) as f64
            };
            median(samples.iter().map(of).collect())
        };
        Self {
            background,
            background_alone: background,
            read: each(reads, Sample::cpu_us, |sample| sample.cpu.len()),
            wake_up: f64::NAN,
            write_leader: each(writes, |sample| sample.leader_and_follower_us().0, |_| 1),
            write_follower: each(writes, |sample| sample.leader_and_follower_us().1, |_| 1),
            write_alone: f64::NAN,
            idle: f64::NAN,
        }
    }

    /// Operations a second of N replicas with a share S of a CPU each and w of the operations writes, if operations use all of it and reads
    /// balance the load: N S / ((1-w) read + w (write_leader + (N-1) write_follower)).
    pub(super) fn bound(&self, replicas: usize, share: f64, writes: f64) -> f64 {
        let replicas = replicas as f64;
        let write = self.write_leader + (replicas - 1.0) * self.write_follower;
        replicas * (share - self.background) * 1e6 / ((1.0 - writes) * self.read + writes * write)
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::Done;
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_costs_are_those_of_the_measurement_and_the_bound_is_what_a_hand_computes() {
        let sample = |reads, writes, cpu_ms: &[u64], leader| Sample {
            done: Done { reads, writes, seconds: 1.0, ..Done::default() },
            cpu: cpu_ms.iter().map(|&ms| Duration::from_millis(ms)).collect(),
            leader,
        };
        let reads = sample(90_000, 0, &[100, 90, 80], 1);
        let writes = sample(0, 10_000, &[50, 100, 30], 1);
        let costs = Costs::of(0.0, std::slice::from_ref(&reads), std::slice::from_ref(&writes));
        assert_eq!((costs.read, costs.write_leader, costs.write_follower), (3.0, 10.0, 4.0));
        // 3 × 0.1 × 10⁶ / (0.95 × 3 + 0.05 × (10 + 2 × 4)) = 300,000 / 3.75
        assert!((costs.bound(3, 0.1, 0.05) - 80_000.0).abs() < 1e-6);
        assert!((costs.bound(5, 0.1, 0.0) - 500_000.0 / 3.0).abs() < 1e-6);
        // 30 of the 270 ms are not the reads', 10 of each replica's.
        let costs = Costs::of(0.01, &[reads], &[writes]);
        assert!((costs.read - 240.0 / 90.0).abs() < 1e-9 && (costs.write_leader - 9.0).abs() < 1e-9, "{costs:?}");
        assert!((costs.bound(3, 0.11, 0.0) - 300_000.0 / costs.read).abs() < 1e-6);
    }
}
