//! A store in a lab: replicas on hosts of their own, each with the same small share of a CPU, and a switch in the kernel.

use super::mode::Mode;
use super::share::Share;
use crate::engines::{LabEngine, at, own_port};
use crate::lab_guard::LabGuard;
use crate::processes::{Process, switch};
use anyhow::{Context, Result, ensure};
use midflight_control::reads::{ReplicaAnswer, ReplicaRequest, SetTable};
use midflight_lab::{Lab, Options, Place, SWITCH_IPV4};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the clients are; replica N is on host N.
pub(super) const CLIENTS: Place = Place::Host(0);

/// For a leader.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a store is to be like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Like {
    pub(super) mode: Mode,
    pub(super) engine: LabEngine,
    pub(super) replicas: usize,
    /// Of a CPU, for each replica.
    pub(super) share: f64,
}

/// Dropping it ends its processes and takes the lab down.
pub(super) struct Store {
    replicas: Vec<Process>,
    _switch: Process,
    _shares: Vec<Share>,
    set: SetTable,
    pub(super) address: SocketAddr,
    pub(super) lab: Lab,
    directory: PathBuf,
}

impl Store {
    pub(super) fn start(like: &Like, guard: &LabGuard) -> Result<Self> {
        let name = format!("modes{}", std::process::id());
        let lab = guard.up(&Options::new(&name, like.replicas + 1).xdp(like.engine == LabEngine::Kernel))?;
        let directory = std::env::temp_dir().join(format!("midflight-{name}"));
        // What an interrupted run has left.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let listen = SocketAddr::from((SWITCH_IPV4, own_port()));
        let set = set(&lab, like, listen);
        let config = directory.join("store.toml");
        std::fs::write(&config, like.mode.configured(&set))?;
        let mut command = like.engine.switch(&lab)?;
        command.arg("--config").arg(&config).args(["--listen", &listen.to_string(), "--http", "off"]);
        let (switch, address) = switch(&mut command)?;
        let (mut replicas, mut shares) = (Vec::new(), Vec::new());
        for id in 1..=like.replicas {
            let process = replica(&lab, id, &config, &directory)?;
            let share = Share::new(&format!("replica{id}"), like.share)?;
            share.take_in(process.id())?;
            replicas.push(process);
            shares.push(share);
        }
        Ok(Self { replicas, _switch: switch, _shares: shares, set, address, lab, directory })
    }

    /// CPU time that each replica has used.
    pub(super) fn cpu_times(&self) -> Result<Vec<Duration>> {
        self.replicas.iter().map(Process::cpu_time).collect()
    }

    /// The place of the leader among the replicas. Waits for one: on a machine that does something else, too, a replica may lose
    /// its lease.
    pub(super) fn leader(&self) -> Result<usize> {
        let leads = |id: u64| match self.set.ask(id, ReplicaRequest::Status) {
            Ok(ReplicaAnswer::Status(status)) => status.session.is_some(),
            _ => false,
        };
        let started = Instant::now();
        loop {
            if let Some(place) = self.set.replicas.iter().position(|replica| leads(replica.id)) {
                return Ok(place);
            }
            ensure!(started.elapsed() < PATIENCE, "no replica leads for {PATIENCE:?}");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn set(lab: &Lab, like: &Like, switch: SocketAddr) -> SetTable {
    let count = u16::try_from(like.replicas).unwrap_or(u16::MAX);
    let mut set = SetTable::on_loopback(rand::random::<u32>().into(), count, 1, switch.port());
    set.switches = vec![switch];
    for (replica, host) in set.replicas.iter_mut().zip(&lab.hosts()[1..]) {
        replica.address.set_ip(host.ipv4.into());
        replica.links.set_ip(host.ipv4.into());
    }
    set
}

fn replica(lab: &Lab, id: usize, config: &Path, directory: &Path) -> Result<Process> {
    let mut command = at(lab, Place::Host(id))?;
    command.arg("replica").arg("--config").arg(config).args(["--id", &id.to_string()]);
    command.arg("--data").arg(directory.join(format!("data-{id}"))).args(["--new", "--http", "off"]);
    let mut process = Process::start(&mut command)?;
    let line = process.line()?;
    ensure!(!line.is_empty(), "a replica says nothing");
    Ok(process)
}

impl Drop for Store {
    fn drop(&mut self) {
        // Before their control groups.
        self.replicas.clear();
        // What cannot be removed from the temporary directory stays there.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
