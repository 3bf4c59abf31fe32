//! Estimates a cell's memory, so that it can be refused before it starts.

use super::{Cell, Load, Scheme};

/// Bytes of a Midflight client, measured with 64,000 of them and rounded up.
const CLIENT: u64 = 16_000;
/// Bytes of a Midflight executor with its tasks at a load of 0.8, measured with a million.
const EXECUTOR: u64 = 2_300;
/// Bytes of an executor in the lean models, with its reservations or task.
const LEAN_EXECUTOR: u64 = 500;
/// Bytes of a trace with ten million tasks, including scaling; measured with the Alibaba trace.
const TRACE: u64 = 600_000_000;
/// Bytes of a program and its tables.
const LEAST: u64 = 20_000_000;

impl Cell {
    /// Estimated bytes of a run; more if the scheme falls behind its load.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let executors = self.cluster.executors();
        let clients = u64::from(self.load.clients()) * u64::from(self.cluster.shards);
        let parts = match self.scheme {
            Scheme::Midflight | Scheme::MidflightServer | Scheme::MidflightKernel(_) | Scheme::MidflightAsic(_) => {
                executors.saturating_mul(EXECUTOR).saturating_add(clients.saturating_mul(CLIENT))
            }
            _ => executors.saturating_mul(LEAN_EXECUTOR),
        };
        let trace = if matches!(self.load, Load::Sample { .. }) { TRACE } else { 0 };
        parts.saturating_add(LEAST + trace)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cluster, Load};
    use super::*;

    #[test]
    fn a_million_executors_need_about_what_they_were_measured_to_take() {
        let load = Load::Mix { short_us: 5e3, long_us: 5e3, short_share: 1.0, load: 0.8, clients: 1_000 };
        let cluster = Cluster { shards: 64, ..Cluster::uniform(15_625, 64) };
        let mut cell =
            Cell { scheme: Scheme::Midflight, cluster, load, seed: 0, warmup_ms: 20, duration_ms: 50, drain_ms: 100 };
        let gib = |cell: &Cell| cell.memory_bytes() as f64 / f64::from(1 << 30);
        assert!((2.5..4.0).contains(&gib(&cell)), "{} GiB", gib(&cell));
        cell.cluster.groups[0].nodes *= 10;
        assert!(gib(&cell) > 20.0, "{} GiB", gib(&cell));
    }
}
