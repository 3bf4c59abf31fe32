//! The victims of an attack: a switch, two executors, a long-lived client, and short-lived clients and executors.

use super::forge::Known;
use super::places::{ATTACKER, BYSTANDER, CLIENT, EXECUTORS, Family, NEWCOMERS, OWN_PORT, Place, ports_at};
use crate::engines::{LabEngine, at};
use crate::lab_guard;
use crate::processes::{self, Process};
use crate::soak::findings::Findings;
use crate::soak::ledger::{Entry, Expected, Ledger};
use anyhow::{Result, ensure};
use midflight_host::{Client, Executor, Job};
use midflight_net::Lab;
use midflight_tasks::functions::{EXEC, NOOP};
use midflight_terminal::switches;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const SLOTS: u32 = 16;
/// Tasks that have not ended by then count as lost. Longer than any bound of the switch (`client_idle` is a minute), with slack for a busy
/// machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// A newcomer within its share must be served at once (T14): before an idle timeout of the switch (`slot_idle`, `client_idle`) makes room.
const AT_ONCE: Duration = Duration::from_secs(8);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Tasks with arguments by reference, so that blob servers are needed.
const BY_REFERENCE: usize = 16;
const NEWCOMERS_TASKS: usize = 32;
const NEWCOMERS_SLOTS: u32 = 2;

pub(super) struct Victims<'a> {
    lab: &'a Lab,
    interrupted: &'a AtomicBool,
    family: Family,
    switch_address: SocketAddr,
    findings: Arc<Findings>,
    ledger: Arc<Ledger>,
    switch: Process,
    executors: Vec<Process>,
    client: Client,
}

impl<'a> Victims<'a> {
    /// Waits until all slots are registered.
    pub(super) fn start(
        lab: &'a Lab,
        engine: LabEngine,
        family: Family,
        port: u16,
        findings: Arc<Findings>,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        // On all addresses, as by default.
        let (listen, asked) = (family.any(port), family.switch(port));
        let mut command = quiet(engine.switch(lab)?);
        command.args(["--listen", &listen.to_string(), "--http", &http(asked).to_string()]);
        let (switch, _) = processes::switch(&mut command)?;
        let executor = |place| processes::executor(quiet(at(lab, place)?), asked, SLOTS);
        let executors = EXECUTORS.into_iter().map(executor).collect::<Result<_>>()?;
        let client = lab.within(CLIENT, || Client::builder().switch(asked).connect_timeout(PATIENCE).connect())??;
        let ledger = Arc::new(Ledger::new(Arc::clone(&findings)));
        Ok(Self { lab, interrupted, family, switch_address: asked, findings, ledger, switch, executors, client })
    }

    pub(super) fn known(&self) -> Result<Known> {
        let mut executors = Vec::new();
        for place in EXECUTORS {
            let ip = self.family.address_of(self.lab, place)?;
            executors.extend(ports_at(self.lab, place, "udp")?.into_iter().map(|port| SocketAddr::new(ip, port)));
        }
        ensure!(!executors.is_empty(), "the executors have no UDP socket");
        let at = |place, port| Ok::<_, anyhow::Error>(SocketAddr::new(self.family.address_of(self.lab, place)?, port));
        Ok(Known {
            switch: self.switch_address,
            clients: vec![at(CLIENT, self.client.local_addr().port())?],
            executors,
            own: at(ATTACKER, OWN_PORT)?,
            bystander: at(BYSTANDER, OWN_PORT)?,
            // The switch answers this to anyone.
            epoch: self.client.epoch(),
        })
    }

    /// HTTP of the switch, blobs of client and executors.
    pub(super) fn servers(&self) -> Result<Vec<SocketAddr>> {
        let mut servers = vec![http(self.switch_address)];
        for place in [CLIENT].into_iter().chain(EXECUTORS) {
            let ip = self.family.address_of(self.lab, place)?;
            servers.extend(ports_at(self.lab, place, "tcp")?.into_iter().map(|port| SocketAddr::new(ip, port)));
        }
        Ok(servers)
    }

    /// Duration of `tasks` no-op tasks and some with arguments by reference; `None` if they do not end.
    pub(super) fn run(&self, tasks: usize) -> Result<Option<Duration>> {
        let started = Instant::now();
        let by_reference = self.submit_by_reference(&self.client)?;
        let job = Job::builder(NOOP).repeat(tasks, Vec::new()).build();
        let entry = self.ledger.submit(&self.client, job, Expected::Nothing)?;
        let ended = self.wait_for("of the client's", &entry, PATIENCE)?
            && self.wait_for("by reference", &by_reference, PATIENCE)?;
        Ok(ended.then(|| started.elapsed()))
    }

    fn submit_by_reference(&self, client: &Client) -> Result<Entry> {
        let texts: Vec<String> =
            (0..BY_REFERENCE).map(|number| format!("longer than a packet takes {number}")).collect();
        let job = Job::builder(EXEC).tasks(texts.iter().map(|text| format!("echo {text}"))).build();
        let prints = texts.iter().map(|text| format!("{text}\n").into_bytes()).collect();
        self.ledger.submit(client, job, Expected::Prints(prints))
    }

    fn wait_for(&self, what: &str, entry: &Entry, patience: Duration) -> Result<bool> {
        let ended = self.until(patience, || Ok(entry.handle.wait_timeout(LOOK_EVERY) && entry.is_done()))?;
        if !ended {
            self.findings.add(format!("{} tasks {what} did not end in {patience:?}", entry.open()));
        }
        Ok(ended)
    }

    /// `false` after `patience`.
    fn until(&self, patience: Duration, mut so: impl FnMut() -> Result<bool>) -> Result<bool> {
        let deadline = Instant::now() + patience;
        while !so()? {
            lab_guard::unless(self.interrupted, self.lab)?;
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A client and an executor join, are served within their shares, and leave.
    pub(super) fn receive_newcomers(&self) -> Result<()> {
        let switch = self.switch_address;
        let builder = || Executor::builder().switch(switch).slots(NEWCOMERS_SLOTS).start();
        let executor = self.lab.within(NEWCOMERS, builder)??;
        if !self.until(AT_ONCE, || Ok(executor.wait_registered(NEWCOMERS_SLOTS, LOOK_EVERY)))? {
            self.findings.add(format!("an executor that came did not get {NEWCOMERS_SLOTS} slots in {AT_ONCE:?}"));
        }
        let client = self.lab.within(NEWCOMERS, || Client::builder().switch(switch).connect_lazy())??;
        let job = Job::builder(NOOP).repeat(NEWCOMERS_TASKS, Vec::new()).build();
        let entry = self.ledger.submit(&client, job, Expected::Nothing)?;
        self.wait_for("of a client that came", &entry, AT_ONCE)?;
        let by_reference = self.submit_by_reference(&client)?;
        self.wait_for("by reference of a client that came", &by_reference, AT_ONCE)?;
        self.ask_for_status();
        if let Err(error) = executor.drain(PATIENCE) {
            self.findings.add(format!("an executor that came could not leave: {error}"));
        }
        Ok(())
    }

    fn ask_for_status(&self) {
        let fetched = self.lab.within(Place::Switch, || switches::status(&http(self.switch_address).to_string()));
        if let Err(error) | Ok(Err(error)) = fetched.map_err(anyhow::Error::from) {
            self.findings.add(format!("the switch's HTTP does not answer: {error:#}"));
        }
    }

    /// An exit is a finding.
    pub(super) fn look_for_the_dead(&mut self) -> Result<()> {
        let executors = self.executors.iter_mut().map(|process| ("an executor", process));
        for (who, process) in [("the switch", &mut self.switch)].into_iter().chain(executors) {
            if let Some(status) = process.ended()? {
                self.findings.add(format!("{who} ended by itself: {status}"));
            }
        }
        Ok(())
    }
}

/// HTTP listens where it can be attacked.
fn http(switch: SocketAddr) -> SocketAddr {
    SocketAddr::new(switch.ip(), switch.port() + 1)
}

/// An attack would fill the log. Ctrl-C must not reach it: the campaign handles it.
fn quiet(mut command: Command) -> Command {
    use std::os::unix::process::CommandExt;
    command.env("RUST_LOG", "off").process_group(0).stderr(Stdio::null());
    command
}
