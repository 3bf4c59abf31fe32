use super::load::Done;
use super::store::Like;
use super::workload::Mix;
use crate::median::median;
use midflight_control::store::ReadMode;
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

type Key = (String, String);

/// A mode in names of results.
pub(super) fn word(mode: ReadMode) -> String {
    mode.name().replace('-', "_")
}

/// All samples, in the order of rounds.
#[derive(Debug, Default)]
pub(super) struct Samples(BTreeMap<Key, Vec<Sample>>);

impl Samples {
    pub(super) fn add(&mut self, like: &Like, mix: &Mix, sample: Sample) {
        let is_larger = like.replicas > super::REPLICAS;
        let workload = if is_larger { format!("{}{}", mix.name, like.replicas) } else { mix.name.to_owned() };
        self.0.entry((workload, word(like.mode))).or_default().push(sample);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str, &[Sample])> {
        self.0.iter().map(|((workload, mode), samples)| (workload.as_str(), mode.as_str(), samples.as_slice()))
    }

    pub(super) fn of(&self, workload: &str, mode: &str) -> &[Sample] {
        self.0.get(&(workload.to_owned(), mode.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// Operations a second.
    pub(super) fn rates(&self, workload: &str, mode: &str) -> Vec<f64> {
        self.of(workload, mode).iter().map(|sample| sample.done.per_second()).collect()
    }
}

/// The busiest replica's use of its share: the median.
pub(super) fn busy(samples: &[Sample], share: f64) -> f64 {
    median(samples.iter().map(|sample| sample.busiest() / share).collect())
}
