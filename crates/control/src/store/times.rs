//! Histograms of a replica's times of syncs, applies and operations.

use crate::metrics::histogram;
use midflight_store::replica::{ReplicaTimes, TIME_BUCKETS, Times};
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A histogram.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimesStatus {
    /// Bucket b counts times of 2^(b-1) to 2^b µs, bucket 0 those below 1 µs; the last one all longer ones.
    pub us: Vec<u64>,
    /// Their sum in nanoseconds.
    pub sum_ns: u64,
}

impl From<&Times> for TimesStatus {
    fn from(times: &Times) -> Self {
        Self { us: times.buckets.to_vec(), sum_ns: times.sum_ns }
    }
}

pub(super) fn by_name(times: &ReplicaTimes) -> BTreeMap<String, TimesStatus> {
    let own = [("fsync", &times.sync), ("apply", &times.apply), ("read", &times.read)];
    let writes = ReplicaTimes::COMMANDS.iter().map(|(_, name)| *name).zip(&times.write);
    own.into_iter().chain(writes).map(|(name, times)| (name.to_owned(), times.into())).collect()
}

/// Disk and applies have metrics of their own; operations are a label.
pub(super) fn encode_times(e: &mut DescriptorEncoder<'_>, all: &BTreeMap<String, TimesStatus>) -> fmt::Result {
    const OWN: [(&str, &str, &str); 2] = [
        ("fsync", "fsync_seconds", "To make safe on the disk what was written"),
        ("apply", "apply_seconds", "From a batch of entries in the log until they are applied"),
    ];
    for (name, metric, help) in OWN {
        let mut metric = e.encode_descriptor(metric, help, None, MetricType::Histogram)?;
        all.get(name).map_or(Ok(()), |times| encode(&mut metric, times))?;
    }
    let help = "From a request at this replica to its answer";
    let mut family = e.encode_descriptor("operation_seconds", help, None, MetricType::Histogram)?;
    for (name, times) in all.iter().filter(|(name, _)| OWN.iter().all(|(own, ..)| own != name)) {
        encode(&mut family.encode_family(&[("operation", name.as_str())])?, times)?;
    }
    Ok(())
}

fn encode(metric: &mut MetricEncoder<'_>, times: &TimesStatus) -> fmt::Result {
    histogram(metric, TIME_BUCKETS - 1, &times.us, times.sum_ns as f64 / 1e9)
}
