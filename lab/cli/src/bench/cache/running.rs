//! A cache of three memcached: `midflight up --cache`, or a small tree in a lab.

use super::Who;
use crate::cache::keys::Keys;
use crate::cache::lab::LabCache;
use crate::processes::{Process, ours};
use anyhow::{Context, Result, ensure};
use midflight_control::cache::clients::{AGENTS, CacheFile};
use midflight_host::cache::{Algorithm, CacheBuilder, CacheClient};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

/// Stops on drop.
pub(super) enum Cache<'l> {
    /// `midflight up --cache` as a process.
    Here(Here),
    /// Each agent and its backend have their own host.
    Lab(LabCache<'l>),
}

impl Cache<'_> {
    /// `count` new clients, without measured latencies.
    pub(super) fn clients(&self, who: Who, count: u32, selector: Algorithm) -> Result<Vec<CacheClient>> {
        let describe = |builder: CacheBuilder, operator| match who {
            Who::Clients => builder.direct(selector, count),
            Who::Switch => builder.operator(operator),
        };
        match self {
            Self::Here(cache) => cache.clients(count, describe),
            Self::Lab(cache) => cache.clients(0, count, describe),
        }
    }

    pub(super) fn fill(&self, keys: &Keys, selector: Algorithm, interrupted: &AtomicBool) -> Result<()> {
        let clients = self.clients(Who::Switch, 1, selector)?;
        let fill = || keys.set_all(&clients[0], interrupted, &|| ());
        match self {
            Self::Here(_) => fill(),
            Self::Lab(cache) => cache.within(0, fill)?,
        }
    }

    /// The backend to pause.
    pub(super) fn first_backend(&self) -> Result<i32> {
        self.backends().first().copied().context("a cache without backends")
    }

    /// Read system calls per backend: a fixed number per get, as agents wait for each response.
    pub(super) fn served(&self) -> Result<Vec<u64>> {
        self.backends().into_iter().map(read_calls).collect()
    }

    /// Process ids of the backends, in the order of their agents.
    fn backends(&self) -> Vec<i32> {
        match self {
            Self::Here(cache) => cache.backends.clone(),
            Self::Lab(cache) => cache.backends().iter().map(|backend| backend.id().cast_signed()).collect(),
        }
    }
}

pub(super) struct Here {
    process: Process,
    operator: SocketAddr,
    backends: Vec<i32>,
}

impl Here {
    pub(super) fn start(selector: Algorithm) -> Result<Self> {
        let mut command = ours()?;
        command.args(["up", "--cache", "--listen", "127.0.0.1:0", "--http", "off", "--selector", selector.name()]);
        let mut process = Process::start(&mut command)?;
        let line = process.line()?;
        let address = line.split([' ', ',']).nth(2).and_then(|word| word.parse().ok());
        let operator = address.with_context(|| format!("a cache began with an unknown line: {line}"))?;
        let backends = children(process.id())?;
        ensure!(backends.len() == usize::from(AGENTS), "the cache has {} backends, not {AGENTS}", backends.len());
        Ok(Self { process, operator, backends })
    }

    fn clients(
        &self,
        count: u32,
        describe: impl Fn(CacheBuilder, SocketAddr) -> CacheBuilder,
    ) -> Result<Vec<CacheClient>> {
        let builder = CacheClient::builder().servers(CacheFile::of_up(Some(self.operator)).servers);
        let builder = describe(builder, self.operator);
        (0..count).map(|_| builder.clone().connect_lazy().context("cannot start a client of the cache")).collect()
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        // It stops its backends. If it does not exit, dropping the process kills it.
        self.process.signal(Signal::INT);
        let _ = self.process.wait(PATIENCE);
    }
}

/// The children of a process, in the order of their start.
fn children(pid: u32) -> Result<Vec<i32>> {
    let file = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    text.split_whitespace().map(|pid| pid.parse().with_context(|| format!("{file} has an unknown format"))).collect()
}

fn read_calls(pid: i32) -> Result<u64> {
    let file = format!("/proc/{pid}/io");
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let count = text.lines().find_map(|line| line.strip_prefix("syscr: ")?.parse().ok());
    count.with_context(|| format!("{file} has an unknown format"))
}
