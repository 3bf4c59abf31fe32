//! A contender's processes in a lab: the first hosts are the clients', the others each have an executor. Midflight's switch
//! serves all measurements, as loading it into the kernel takes longer than some of them; all else is new in each.

use super::contender::Contender;
use super::starts::{self, Start};
use crate::engines::{LabEngine, at};
use crate::processes::{Process, executor, switch};
use anyhow::{Context, Result, ensure};
use midflight_control::config::DEFAULT_PORT;
use midflight_host::Client;
use crate::baseline::sparrow::SparrowClient;
use midflight_net::{Lab, Place, SWITCH_IPV4};
use midflight_terminal::switches::connect;
use rustix::process::Signal;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

/// Where Sparrow's processes listen.
const SCHEDULER_PORT: u16 = 7800;
const WORKER_PORT: u16 = 7801;
/// How long an executor may take to leave.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a contender runs: a lab, and in it Midflight's switch.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub contender: Contender,
    pub lab: &'a Lab,
    /// None of Sparrow.
    pub switch: Option<SocketAddr>,
}

/// The cluster's layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub clients: usize,
    /// Hosts with an executor.
    pub nodes: usize,
    /// Of each executor.
    pub slots: u32,
    /// How Sparrow's executors get their tasks.
    pub sparrow: Sparrow,
}

/// Two ways to run Sparrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sparrow {
    /// A scheduler on each client's host, of which each samples from all executors.
    Probing,
    /// One scheduler, at the switch, which executors ask of their own accord.
    Asked,
}

/// A running cluster; dropping it kills its processes.
pub(super) struct Cluster<'a> {
    ground: Ground<'a>,
    /// The switch or scheduler of each client.
    entries: Vec<SocketAddr>,
    executors: Vec<Process>,
    /// Sparrow's schedulers.
    _schedulers: Vec<Process>,
}

/// A client on its host.
pub(super) enum Submitter {
    Midflight(Client),
    Sparrow(SparrowClient),
}

impl<'a> Cluster<'a> {
    /// All processes run, and all slots are registered.
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

    /// The client of this number.
    pub(super) fn client(&self, number: usize) -> Result<Submitter> {
        let entry = *self.entries.get(number).context("no such client")?;
        self.ground.lab.within(Place::Host(number), || {
            Ok(match self.ground.switch {
                None => Submitter::Sparrow(SparrowClient::connect(vec![entry])?),
                Some(_) => Submitter::Midflight(connect(vec![entry])?),
            })
        })?
    }

    /// Lets the executors leave, so that the switch expects nothing of them any more. Of Sparrow's, what they started and
    /// were to record.
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

/// Midflight's switch in a lab.
pub(super) fn start_switch(lab: &Lab, engine: LabEngine) -> Result<(Process, SocketAddr)> {
    let listen = SocketAddr::from((SWITCH_IPV4, DEFAULT_PORT)).to_string();
    switch(engine.switch(lab)?.args(["--listen", &listen, "--http", "off"]))
}

/// Without warnings, unless they are asked for: that others use its core is normal here.
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

/// One of Sparrow's processes, which has said that it listens.
fn sparrow(lab: &Lab, place: Place, args: &[&str]) -> Result<Process> {
    let mut process = Process::start(quiet(at(lab, place)?).args(["baseline", "sparrow"]).args(args))?;
    process.line()?;
    Ok(process)
}
