//! A contender's processes in a lab: the first hosts run clients, the others executors. All measurements share Midflight's switch, as
//! loading it into the kernel takes longer than some of them.

use super::contender::Contender;
use super::starts::{self, Start};
use crate::baseline::sparrow::SparrowClient;
use crate::engines::{LabEngine, at};
use crate::processes::{Process, executor, switch};
use anyhow::{Context, Result, ensure};
use midflight_control::config::DEFAULT_PORT;
use midflight_host::Client;
use midflight_net::{Lab, Place, SWITCH_IPV4};
use midflight_terminal::switches::connect;
use rustix::process::Signal;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

const SCHEDULER_PORT: u16 = 7800;
const WORKER_PORT: u16 = 7801;
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub contender: Contender,
    pub lab: &'a Lab,
    /// `None` for Sparrow.
    pub switch: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub clients: usize,
    pub nodes: usize,
    /// Slots per executor.
    pub slots: u32,
    /// How executors get their tasks.
    pub sparrow: Sparrow,
}

/// Two ways to run Sparrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sparrow {
    /// A scheduler on each client's host; each samples from all executors.
    Probing,
    /// One scheduler, at the switch; idle executors request tasks from it.
    Asked,
}

/// Kills its processes on drop.
pub(super) struct Cluster<'a> {
    ground: Ground<'a>,
    /// Switch or scheduler of each client.
    entries: Vec<SocketAddr>,
    executors: Vec<Process>,
    _schedulers: Vec<Process>,
}

pub(super) enum Submitter {
    Midflight(Client),
    Sparrow(SparrowClient),
}

impl<'a> Cluster<'a> {
    /// Waits until all slots are registered.
    pub(super) fn start(ground: Ground<'a>, layout: Layout) -> Result<Self> {
        match (ground.switch, layout.sparrow) {
            (Some(switch), _) => Self::midflight(ground, switch, layout),
            (None, Sparrow::Probing) => Self::probing(ground, layout),
            (None, Sparrow::Asked) => Self::asked(ground, layout),
        }
    }

    fn midflight(ground: Ground<'a>, switch: SocketAddr, layout: Layout) -> Result<Self> {
        let start = |node| executor(quiet(at(ground.lab, place(layout, node))?), switch, layout.slots);
        let executors = (0..layout.nodes).map(start).collect::<Result<_>>()?;
        Ok(Self { ground, entries: vec![switch; layout.clients], executors, _schedulers: Vec::new() })
    }

    fn probing(ground: Ground<'a>, layout: Layout) -> Result<Self> {
        let lab = ground.lab;
        let slots = layout.slots.to_string();
        let (mut workers, mut executors) = (Vec::new(), Vec::new());
        for node in 0..layout.nodes {
            let listen = address(lab, layout.clients + node, WORKER_PORT)?;
            let args = ["worker", "--listen", &listen.to_string(), "--slots", &slots, "--starts"];
            executors.push(sparrow(lab, place(layout, node), &args)?);
            workers.push(format!("{listen}/{slots}"));
        }
        let (workers, mut schedulers, mut entries) = (workers.join(","), Vec::new(), Vec::new());
        for client in 0..layout.clients {
            let listen = address(lab, client, SCHEDULER_PORT)?;
            let args = ["scheduler", "--listen", &listen.to_string(), "--worker", &workers];
            schedulers.push(sparrow(lab, Place::Host(client), &args)?);
            entries.push(listen);
        }
        Ok(Self { ground, entries, executors, _schedulers: schedulers })
    }

    fn asked(ground: Ground<'a>, layout: Layout) -> Result<Self> {
        let lab = ground.lab;
        let (scheduler, slots) = (SocketAddr::from((SWITCH_IPV4, SCHEDULER_PORT)), layout.slots.to_string());
        let listen = scheduler.to_string();
        let process = sparrow(lab, Place::Switch, &["scheduler", "--listen", &listen, "--no-probing"])?;
        let mut executors = Vec::new();
        for node in 0..layout.nodes {
            let worker = address(lab, layout.clients + node, WORKER_PORT)?.to_string();
            let args = ["worker", "--listen", &worker, "--slots", &slots, "--ask", &listen];
            executors.push(sparrow(lab, place(layout, node), &args)?);
        }
        Ok(Self { ground, entries: vec![scheduler; layout.clients], executors, _schedulers: vec![process] })
    }

    pub(super) fn client(&self, number: usize) -> Result<Submitter> {
        let entry = *self.entries.get(number).context("no such client")?;
        self.ground.lab.within(Place::Host(number), || {
            Ok(match self.ground.switch {
                None => Submitter::Sparrow(SparrowClient::connect(vec![entry])?),
                Some(_) => Submitter::Midflight(connect(vec![entry])?),
            })
        })?
    }

    /// Nanoseconds on a CPU of all executors, and how often their threads got one.
    pub(super) fn turns(&self) -> Result<[f64; 2]> {
        let mut all = [0.0; 2];
        for executor in &self.executors {
            let [on_cpu, _, times] = executor.scheduled()?;
            all = [all[0] + on_cpu as f64, all[1] + times as f64];
        }
        Ok(all)
    }

    /// Lets the executors leave, so that the switch forgets them. Returns the starts that Sparrow's executors recorded.
    pub(super) fn end(mut self) -> Result<Vec<Start>> {
        for executor in &self.executors {
            executor.signal(Signal::TERM);
        }
        let mut starts = Vec::new();
        for executor in &mut self.executors {
            let printed = executor.rest()?;
            let ended = executor.wait(PATIENCE)?;
            ensure!(ended.is_some_and(|status| status.success()), "an executor did not leave: it ended as {ended:?}");
            starts.extend(starts::parse(&printed)?);
        }
        Ok(starts)
    }
}

pub(super) fn start_switch(lab: &Lab, engine: LabEngine) -> Result<(Process, SocketAddr)> {
    let listen = SocketAddr::from((SWITCH_IPV4, DEFAULT_PORT)).to_string();
    switch(engine.switch(lab)?.args(["--listen", &listen, "--http", "off"]))
}

/// Hides warnings: a shared core is normal here.
fn quiet(mut command: Command) -> Command {
    const LOG: &str = "RUST_LOG";
    if std::env::var_os(LOG).is_none() {
        command.env(LOG, "error");
    }
    command
}

fn place(layout: Layout, node: usize) -> Place {
    Place::Host(layout.clients + node)
}

fn address(lab: &Lab, host: usize, port: u16) -> Result<SocketAddr> {
    let host = lab.host(host).context("the lab has too few hosts")?;
    Ok(SocketAddr::new(IpAddr::V4(host.ipv4), port))
}

/// Waits until it listens.
fn sparrow(lab: &Lab, place: Place, args: &[&str]) -> Result<Process> {
    let mut process = Process::start(quiet(at(lab, place)?).args(["baseline", "sparrow"]).args(args))?;
    process.line()?;
    Ok(process)
}
