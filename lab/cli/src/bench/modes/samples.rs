use super::load::Done;
use crate::median::median;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) done: Done,
    /// CPU time per replica.
    pub(super) cpu: Vec<Duration>,
    /// Index of the leader.
    pub(super) leader: usize,
}

impl Sample {
    /// CPU time as a share of elapsed time.
    fn busiest(&self) -> f64 {
        let longest = self.cpu.iter().max().copied().unwrap_or_default();
        longest.as_secs_f64() / self.done.seconds
    }

    /// The mean share of a CPU that a replica took.
    pub(super) fn share(&self) -> f64 {
        self.cpu_us() / 1e6 / self.done.seconds / self.cpu.len() as f64
    }

    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu.iter().sum::<Duration>().as_secs_f64() * 1e6
    }

    /// The leader's CPU time, and the mean of the followers'.
    pub(super) fn leader_and_follower_us(&self) -> (f64, f64) {
        let leader = self.cpu[self.leader].as_secs_f64() * 1e6;
        let followers = (self.cpu.len() - 1).max(1) as f64;
        (leader, (self.cpu_us() - leader) / followers)
    }
}

/// All samples, by workload and store, in the order of rounds.
#[derive(Debug, Default)]
pub(super) struct Samples(BTreeMap<(String, String), Vec<Sample>>);

impl Samples {
    pub(super) fn add(&mut self, workload: &str, store: &str, sample: Sample) {
        self.0.entry((workload.to_owned(), store.to_owned())).or_default().push(sample);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str, &[Sample])> {
        self.0.iter().map(|((workload, store), samples)| (workload.as_str(), store.as_str(), samples.as_slice()))
    }

    pub(super) fn of(&self, workload: &str, store: &str) -> &[Sample] {
        self.0.get(&(workload.to_owned(), store.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// A quantity of each round.
    pub(super) fn each(&self, workload: &str, store: &str, quantity: impl Fn(&Done) -> f64) -> Vec<f64> {
        self.of(workload, store).iter().map(|sample| quantity(&sample.done)).collect()
    }
}

/// The busiest replica's use of its share: the median.
pub(super) fn busy(samples: &[Sample], share: f64) -> f64 {
    median(samples.iter().map(|sample| sample.busiest() / share).collect())
}
