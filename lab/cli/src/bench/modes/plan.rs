//! What is measured: stores, and the workloads of each.

use super::workload::{CLIENTS, Mix, ZIPF};
use clap::ValueEnum;
use midflight_control::store::ReadMode;
use midflight_dataplane::store::Policy;

/// A series of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sweep {
    /// Workloads A, B and C, uniform and by Zipf's law; 3 replicas, and on C also 5
    Workloads,
    /// Workloads C and B with 1 to 1,024 clients
    Clients,
    /// 50 to 100 % reads
    Ratio,
    /// Workload B with Zipf's exponents from 0.5 to 0.99
    Skew,
    /// Mode flair's ways to choose a replica, with all replicas alike, and with one that has half of the others' share
    Balance,
}

/// A store to measure.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// In names of results.
    pub(super) name: String,
    pub(super) mode: ReadMode,
    pub(super) policy: Policy,
    pub(super) replicas: usize,
    /// A follower gets this part of the others' share.
    pub(super) slow: f64,
    pub(super) mixes: Vec<Mix>,
}

pub(super) const REPLICAS: usize = 3;
const MORE_REPLICAS: usize = 5;

impl Sweep {
    pub(super) fn parts(self, modes: &[ReadMode], policy: Policy) -> Vec<Part> {
        if self == Self::Balance {
            return balance();
        }
        let part = |mode: &ReadMode| Part {
            name: mode.name().replace('-', "_"),
            mode: *mode,
            policy,
            replicas: if *mode == ReadMode::Unreplicated { 1 } else { REPLICAS },
            slow: 1.0,
            mixes: self.mixes(),
        };
        let mut parts: Vec<Part> = modes.iter().map(part).collect();
        if self == Self::Workloads {
            let scales = |part: &&Part| matches!(part.mode, ReadMode::Flair | ReadMode::LeaderLease);
            let larger = |part: &Part| Part {
                replicas: MORE_REPLICAS,
                mixes: vec![Mix::new(format!("C{MORE_REPLICAS}"), 0.0)],
                ..part.clone()
            };
            let larger: Vec<Part> = parts.iter().filter(scales).map(larger).collect();
            parts.extend(larger);
        }
        parts
    }

    fn mixes(self) -> Vec<Mix> {
        match self {
            Self::Workloads => {
                let ycsb = [("C", 0.0), ("B", 0.05), ("A", 0.5)].map(|(name, writes)| Mix::both(name, writes));
                ycsb.into_iter().flatten().collect()
            }
            Self::Clients => {
                let of = |(name, writes)| {
                    [1, 16, 64, 256, CLIENTS]
                        .map(|clients| Mix { clients, ..Mix::new(format!("{name}.clients-{clients}"), writes) })
                };
                [("C", 0.0), ("B", 0.05)].map(of).into_iter().flatten().collect()
            }
            Self::Ratio => {
                let of = |percent: u32| Mix::new(format!("reads-{percent}"), 1.0 - f64::from(percent) / 100.0);
                [50, 70, 90, 95, 100].map(of).into()
            }
            Self::Skew => {
                let of = |zipf: f64| Mix { zipf, ..Mix::new(format!("B.zipf-{zipf}"), 0.05) };
                [0.5, 0.7, 0.9, ZIPF].map(of).into()
            }
            Self::Balance => Vec::new(),
        }
    }
}

fn balance() -> Vec<Part> {
    let mut parts = Vec::new();
    for policy in [Policy::LeaderAvoidance, Policy::Random, Policy::LoadAwareLeaderAvoidance] {
        for (setting, slow) in [("", 1.0), (".slow", 0.5)] {
            let mixes = [("C", 0.0), ("B", 0.05)].map(|(name, writes)| Mix::new(format!("{name}{setting}"), writes));
            let name = policy.name().replace('-', "_");
            parts.push(Part { name, mode: ReadMode::Flair, policy, replicas: REPLICAS, slow, mixes: mixes.into() });
        }
    }
    parts
}
