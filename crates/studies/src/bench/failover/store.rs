//! A store as processes: three replicas and two switches on loopback, in a directory of its own.

use crate::processes::{Process, ours};
use anyhow::{Context, Result, bail};
use midflight_control::reads::{ReplicaAnswer, ReplicaRequest, ReplicaStatus, ReplicaTable, SetTable};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Until a store that has just started, or lost a process, is well again.
const WELL: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const REPLICAS: usize = 3;

pub(super) struct Store {
    directory: PathBuf,
    set: SetTable,
    switches: Vec<Option<Process>>,
    replicas: Vec<Option<Process>>,
}

impl Store {
    pub(super) fn start() -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("midflight-failover-{}", std::process::id()));
        std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let mut set = SetTable::on_loopback(1, REPLICAS as u16, 2, 0);
        set.switches.iter_mut().try_for_each(|switch| free_udp().map(|free| *switch = free))?;
        for ReplicaTable { address, links, .. } in &mut set.replicas {
            (*address, *links) = (free_udp()?, TcpListener::bind("127.0.0.1:0")?.local_addr()?);
        }
        let mut store = Self { directory, set, switches: Vec::new(), replicas: Vec::new() };
        std::fs::write(store.config(), store.set.to_toml())?;
        store.switches.resize_with(2, || None);
        store.replicas.resize_with(REPLICAS, || None);
        (1..=2).try_for_each(|number| store.start_switch(number))?;
        (1..=REPLICAS).try_for_each(|id| store.start_replica(id))?;
        Ok(store)
    }

    fn config(&self) -> PathBuf {
        self.directory.join("store.toml")
    }

    pub(super) fn switches(&self) -> Vec<SocketAddr> {
        self.set.switches.clone()
    }

    /// Numbers count from 1.
    pub(super) fn start_switch(&mut self, number: usize) -> Result<()> {
        let listen = self.set.switches[number - 1].to_string();
        let mut command = ours()?;
        command.arg("switch").arg("--config").arg(self.config()).args(["--listen", &listen, "--http", "off"]);
        let mut process = Process::start(&mut command)?;
        process.line()?;
        self.switches[number - 1] = Some(process);
        Ok(())
    }

    pub(super) fn start_replica(&mut self, id: usize) -> Result<()> {
        let data = self.directory.join(format!("data-{id}"));
        let mut command = ours()?;
        command.arg("replica").arg("--config").arg(self.config()).arg("--id").arg(id.to_string());
        command.arg("--data").arg(data).args(["--new", "--http", "off"]);
        let mut process = Process::start(&mut command)?;
        process.line()?;
        self.replicas[id - 1] = Some(process);
        Ok(())
    }

    /// Dropping a process sends SIGKILL.
    pub(super) fn kill_switch(&mut self, number: usize) {
        self.switches[number - 1] = None;
    }

    pub(super) fn kill_replica(&mut self, id: usize) {
        self.replicas[id - 1] = None;
    }

    fn statuses(&self) -> Vec<ReplicaStatus> {
        let ask = |replica: &ReplicaTable| match self.set.ask(replica.id, ReplicaRequest::Status) {
            Ok(ReplicaAnswer::Status(status)) => Some(*status),
            _ => None,
        };
        self.set.replicas.iter().filter_map(ask).collect()
    }

    fn led(&self) -> Option<(ReplicaStatus, SocketAddr)> {
        self.statuses().into_iter().find_map(|status| {
            let at = status.session.as_ref()?.switch;
            status.has_lease.then_some((status, at))
        })
    }

    pub(super) fn leader(&self) -> Result<usize> {
        let (status, _) = self.led().context("no replica has a session")?;
        Ok(usize::try_from(status.replica)?)
    }

    /// The number of the switch that has the session.
    pub(super) fn active_switch(&self) -> Result<usize> {
        let (_, at) = self.led().context("no replica has a session")?;
        let place = self.set.switches.iter().position(|address| *address == at);
        Ok(place.context("a session at an unknown switch")? + 1)
    }

    /// All replicas run and have what the leader has committed; it has a session.
    pub(super) fn wait_until_well(&self) -> Result<()> {
        let deadline = Instant::now() + WELL;
        while Instant::now() < deadline {
            let committed = self.led().map(|(status, _)| status.committed);
            let statuses = self.statuses();
            if committed.is_some_and(|committed| statuses.iter().all(|status| status.applied + 100 >= committed))
                && statuses.len() == REPLICAS
            {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        bail!("the store is not well after {WELL:?}: {:?}", self.statuses())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.switches.clear();
        self.replicas.clear();
        // What cannot be removed from the temporary directory stays there.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// An address that was free a moment ago.
fn free_udp() -> Result<SocketAddr> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?)
}
