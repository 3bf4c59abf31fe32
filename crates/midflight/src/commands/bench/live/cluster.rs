//! A contender's processes in a lab: the first hosts are the clients', the others each have an executor.

use super::contender::Contender;
use super::starts::{self, Start};
use crate::embedded::connect;
use crate::engines::{Engine, at};
use crate::processes::{Process, executor, switch};
use anyhow::{Context, Result};
use midflight_control::config::DEFAULT_PORT;
use midflight_host::Client;
use midflight_host::baseline::SparrowClient;
use midflight_lab::{Lab, Place, SWITCH_IPV4};
use rustix::process::Signal;
use std::net::{IpAddr, SocketAddr};

/// Where Sparrow's processes listen.
const SCHEDULER_PORT: u16 = 7800;
const WORKER_PORT: u16 = 7801;

/// Who is where.
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
    lab: &'a Lab,
    /// Whom each client talks to.
    entries: Vec<SocketAddr>,
    executors: Vec<Process>,
    /// Switch or schedulers.
    _servers: Vec<Process>,
}

/// A client on its host.
pub(super) enum Submitter {
    Midflight(Client),
    Sparrow(SparrowClient),
}

impl<'a> Cluster<'a> {
    /// All processes run, and all slots are registered.
    pub(super) fn start(lab: &'a Lab, contender: Contender, layout: Layout) -> Result<Self> {
        match (contender.engine(), layout.sparrow) {
            (Some(engine), _) => Self::midflight(lab, engine, layout),
            (None, Sparrow::Probing) => Self::probing(lab, layout),
            (None, Sparrow::Asked) => Self::asked(lab, layout),
        }
    }

    fn midflight(lab: &'a Lab, engine: Engine, layout: Layout) -> Result<Self> {
        let listen = SocketAddr::from((SWITCH_IPV4, DEFAULT_PORT)).to_string();
        let (process, address) = switch(engine.switch(lab)?.args(["--listen", &listen, "--http", "off"]))?;
        let start = |node| executor(at(lab, place(layout, node))?, address, layout.slots);
        let executors = (0..layout.nodes).map(start).collect::<Result<_>>()?;
        Ok(Self { lab, entries: vec![address; layout.clients], executors, _servers: vec![process] })
    }

    fn probing(lab: &'a Lab, layout: Layout) -> Result<Self> {
        let slots = layout.slots.to_string();
        let (mut workers, mut executors) = (Vec::new(), Vec::new());
        for node in 0..layout.nodes {
            let listen = address(lab, layout.clients + node, WORKER_PORT)?;
            let args = ["worker", "--listen", &listen.to_string(), "--slots", &slots, "--starts"];
            executors.push(sparrow(lab, place(layout, node), &args)?);
            workers.push(format!("{listen}/{slots}"));
        }
        let (workers, mut servers, mut entries) = (workers.join(","), Vec::new(), Vec::new());
        for client in 0..layout.clients {
            let listen = address(lab, client, SCHEDULER_PORT)?;
            let args = ["scheduler", "--listen", &listen.to_string(), "--worker", &workers];
            servers.push(sparrow(lab, Place::Host(client), &args)?);
            entries.push(listen);
        }
        Ok(Self { lab, entries, executors, _servers: servers })
    }

    fn asked(lab: &'a Lab, layout: Layout) -> Result<Self> {
        let (scheduler, slots) = (SocketAddr::from((SWITCH_IPV4, SCHEDULER_PORT)), layout.slots.to_string());
        let listen = scheduler.to_string();
        let server = sparrow(lab, Place::Switch, &["scheduler", "--listen", &listen, "--no-probing"])?;
        let mut executors = Vec::new();
        for node in 0..layout.nodes {
            let worker = address(lab, layout.clients + node, WORKER_PORT)?.to_string();
            let args = ["worker", "--listen", &worker, "--slots", &slots, "--ask", &listen];
            executors.push(sparrow(lab, place(layout, node), &args)?);
        }
        Ok(Self { lab, entries: vec![scheduler; layout.clients], executors, _servers: vec![server] })
    }

    /// The client of this number.
    pub(super) fn client(&self, number: usize, contender: Contender) -> Result<Submitter> {
        let entry = *self.entries.get(number).context("no such client")?;
        self.lab.within(Place::Host(number), || {
            Ok(match contender {
                Contender::Sparrow => Submitter::Sparrow(SparrowClient::connect(vec![entry])?),
                Contender::Kernel | Contender::User => Submitter::Midflight(connect(vec![entry])?),
            })
        })?
    }

    /// Ends Sparrow's workers, and takes what they started.
    pub(super) fn starts(mut self) -> Result<Vec<Start>> {
        let mut all = Vec::new();
        for worker in &mut self.executors {
            worker.signal(Signal::TERM);
            all.extend(starts::parse(&worker.rest()?)?);
        }
        Ok(all)
    }
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
    let mut process = Process::start(at(lab, place)?.args(["baseline", "sparrow"]).args(args))?;
    process.line()?;
    Ok(process)
}
