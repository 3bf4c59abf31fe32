//! A store in a lab: replicas on separate hosts with the same small CPU share.

use super::plan::Part;
use super::share::Share;
use crate::engines::LabEngine;
use crate::lab_guard::LabGuard;
use crate::store::cluster::{Cluster, Ground, Size};
use anyhow::Result;
use midflight_host::store::{StoreBuilder, StoreClient};
use midflight_net::{Lab, Options};
use std::time::{Duration, Instant};

/// Timeout for the election of a leader.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Polling would take most of a small share.
fn size(part: &Part) -> Size {
    Size { replicas: part.replicas, reads: part.mode, policy: part.policy, busy_poll: false, ..Size::USUAL }
}

pub(super) fn lab(part: &Part, engine: LabEngine, guard: &LabGuard) -> Result<Lab> {
    let name = format!("modes{}", std::process::id());
    Ok(guard.up(&Options::new(name, size(part).hosts()).xdp(engine == LabEngine::Kernel))?)
}

/// Stops on drop.
pub(super) struct Store<'l> {
    cluster: Cluster<'l>,
    /// Dropped after their processes.
    _shares: Vec<Share>,
}

impl<'l> Store<'l> {
    /// Waits until it serves. Each replica gets this share of a CPU; a slow one, less.
    pub(super) fn start(part: &Part, share: f64, engine: LabEngine, lab: &'l Lab, guard: &LabGuard) -> Result<Self> {
        let cluster = Cluster::start(Ground::Lab(lab, engine), size(part))?;
        guard.remove_too(cluster.directory());
        cluster.wait_until_well()?;
        let slow = if cluster.leader()? == 1 { 2 } else { 1 };
        let mut shares = Vec::new();
        for (id, process) in (1..).zip(cluster.replicas()) {
            let of_usual = if id == slow && part.slow < 1.0 { part.slow } else { 1.0 };
            let share = Share::new(&format!("replica{id}"), share * of_usual)?;
            share.take_in(process.id())?;
            shares.push(share);
        }
        Ok(Self { cluster, _shares: shares })
    }

    pub(super) fn client(&self, describe: impl FnOnce(StoreBuilder) -> StoreBuilder + Send) -> Result<StoreClient> {
        self.cluster.client(0, describe)
    }

    pub(super) fn cpu_times(&self) -> Result<Vec<Duration>> {
        self.cluster.replicas().map(|process| process.cpu_time()).collect()
    }

    /// Waits for one: on a busy machine a leader may lose its lease.
    pub(super) fn leader(&self) -> Result<usize> {
        let started = Instant::now();
        loop {
            match self.cluster.leader() {
                Ok(id) => return Ok(id - 1),
                Err(error) if started.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
}
