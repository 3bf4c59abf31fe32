//! The cluster of a soak: one switch, seats for executors, and visiting clients. Any process may end in any way; `tend` restarts those that
//! are due.

use super::findings::Findings;
use super::gauges::BpfObject;
use crate::engines::{LabEngine, at};
use crate::processes::{self, Process};
use anyhow::{Context, Result, bail};
use midflight_control::Snapshot;
use midflight_control::config::DEFAULT_HTTP_PORT;
use midflight_net::{Lab, Place, SWITCH_IPV4, SWITCH_IPV6};
use midflight_terminal::switches;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const HOSTS: usize = 4;
pub(super) const CLIENTS: Place = Place::Host(0);
const VISITORS: Place = Place::Host(3);
/// Timeout for a process's reaction. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for an executor to drain its tasks, each of which takes milliseconds.
const DRAIN: &str = "30s";
/// A younger process may not handle signals yet.
const CHILDHOOD: Duration = Duration::from_secs(2);

/// The first stays and can run everything, so no task depends on the others.
const SEATS: [SeatPlan; 5] = [
    SeatPlan { host: 1, slots: 8, resources: "r0,r1,r2", ipv6: false },
    SeatPlan { host: 1, slots: 16, resources: "r0", ipv6: false },
    SeatPlan { host: 2, slots: 16, resources: "r0,r1", ipv6: true },
    SeatPlan { host: 2, slots: 32, resources: "", ipv6: false },
    SeatPlan { host: 3, slots: 4, resources: "r2", ipv6: true },
];
/// Seats whose executors come and go.
pub(super) const FICKLE: std::ops::Range<usize> = 1..SEATS.len();

#[derive(Debug)]
struct SeatPlan {
    host: usize,
    slots: u32,
    resources: &'static str,
    ipv6: bool,
}

#[derive(Debug)]
enum Seat {
    /// Empty until this time.
    Empty(Instant),
    Taken {
        process: Process,
        since: Instant,
    },
    /// Leaving on request, to return after `away`.
    Leaving {
        process: Process,
        since: Instant,
        away: Duration,
    },
}

#[derive(Debug)]
struct Visitor {
    process: Process,
    since: Instant,
    dies_at: Option<Instant>,
    /// It may have found no switch, and then gives up.
    excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// By a signal that lets it shut down.
    Asked,
    Killed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// The next switch takes it over. Only with the kernel engine.
    Kept,
    /// It is lost, with the switch's programs, until the next switch starts.
    Gone,
    /// The next switch discards it. Only with the kernel engine.
    ThrownAway,
}

/// Counts of disturbances so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deeds {
    pub(super) executors_left: u64,
    pub(super) executors_killed: u64,
    pub(super) visitors: u64,
    pub(super) visitors_killed: u64,
    pub(super) switches_kept: u64,
    pub(super) switches_emptied: u64,
}

#[derive(Debug)]
pub(super) struct Cluster<'lab> {
    lab: &'lab Lab,
    engine: LabEngine,
    port: u16,
    findings: Arc<Findings>,
    switch: Option<Process>,
    seats: Vec<Seat>,
    visitors: Vec<Visitor>,
    /// BPF objects that switches have had.
    objects: BTreeSet<BpfObject>,
    /// Tasks expired with their silent slots at earlier switches.
    expired_before: u64,
    pub(super) deeds: Deeds,
}

impl<'lab> Cluster<'lab> {
    pub(super) fn start(lab: &'lab Lab, engine: LabEngine, port: u16, findings: Arc<Findings>) -> Result<Self> {
        let mut cluster = Self {
            lab,
            engine,
            port,
            findings,
            switch: None,
            seats: SEATS.iter().map(|_| Seat::Empty(Instant::now())).collect(),
            visitors: Vec::new(),
            objects: BTreeSet::new(),
            expired_before: 0,
            deeds: Deeds::default(),
        };
        cluster.start_switch(&[])?;
        cluster.tend()?;
        Ok(cluster)
    }

    pub(super) fn switch_address(&self, ipv6: bool) -> SocketAddr {
        if ipv6 { (SWITCH_IPV6, self.port).into() } else { (SWITCH_IPV4, self.port).into() }
    }

    pub(super) fn snapshot(&self) -> Result<Snapshot> {
        let http = format!("127.0.0.1:{DEFAULT_HTTP_PORT}");
        let text = self.lab.within(Place::Switch, || switches::status(&http))??;
        serde_json::from_str(&text).context("/status is no valid JSON of a status")
    }

    pub(super) fn switch_id(&self) -> Option<u32> {
        self.switch.as_ref().map(Process::id)
    }

    /// Id of the executor that stays.
    pub(super) fn executor_id(&self) -> Option<u32> {
        match &self.seats[0] {
            Seat::Taken { process, .. } => Some(process.id()),
            _ => None,
        }
    }

    pub(super) fn bpf_objects(&mut self) -> Result<BTreeSet<BpfObject>> {
        let Some(switch) = self.switch_id() else { return Ok(BTreeSet::new()) };
        let objects = BpfObject::of(switch)?;
        self.objects.extend(&objects);
        Ok(objects)
    }

    /// Tasks expired with their silent slots.
    pub(super) fn expired(&self) -> Result<u64> {
        Ok(self.expired_before + self.snapshot()?.program.tasks.expired)
    }

    /// Detects exits, and starts what is due. Call often.
    pub(super) fn tend(&mut self) -> Result<()> {
        for number in 0..self.seats.len() {
            self.tend_seat(number)?;
        }
        self.tend_visitors()?;
        if let Some(switch) = &mut self.switch
            && let Some(status) = switch.ended()?
        {
            bail!("the switch ended by itself: {status}");
        }
        Ok(())
    }

    fn tend_seat(&mut self, number: usize) -> Result<()> {
        let now = Instant::now();
        match &mut self.seats[number] {
            Seat::Empty(until) if *until > now => {}
            Seat::Empty(_) => {
                let process = Process::start(&mut self.executor(&SEATS[number])?)?;
                self.seats[number] = Seat::Taken { process, since: now };
            }
            Seat::Taken { process, .. } => {
                if let Some(status) = process.ended()? {
                    self.findings.add(format!("executor {number} ended by itself: {status}"));
                    self.seats[number] = Seat::Empty(now);
                }
            }
            Seat::Leaving { process, since, away } => match process.ended()? {
                Some(status) => {
                    if !status.success() {
                        self.findings.add(format!("executor {number} was asked to leave and ended with {status}"));
                    }
                    self.seats[number] = Seat::Empty(now + *away);
                }
                None if since.elapsed() > PATIENCE => {
                    self.findings.add(format!("executor {number} was asked to leave and did not in {PATIENCE:?}"));
                    self.seats[number] = Seat::Empty(now); // which kills it
                }
                None => {}
            },
        }
        Ok(())
    }

    fn executor(&self, plan: &SeatPlan) -> Result<Command> {
        let (switch, slots) = (self.switch_address(plan.ipv6).to_string(), plan.slots.to_string());
        let mut command = quiet(at(self.lab, Place::Host(plan.host))?);
        command.args(["executor", "--switch", &switch, "--slots", &slots, "--drain", DRAIN]);
        if !plan.resources.is_empty() {
            command.args(["--resources", plan.resources]);
        }
        Ok(command)
    }

    fn tend_visitors(&mut self) -> Result<()> {
        let mut still_here = Vec::new();
        for mut visitor in std::mem::take(&mut self.visitors) {
            match visitor.process.ended()? {
                Some(status) if status.success() => self.deeds.visitors += 1,
                Some(_) if visitor.excused => {}
                Some(status) => {
                    let said = visitor.process.line().unwrap_or_default();
                    self.findings.add(format!("`midflight submit` ended with {status}: {}", said.trim_end()));
                }
                None if visitor.dies_at.is_some_and(|at| at <= Instant::now()) => self.deeds.visitors_killed += 1,
                None if visitor.since.elapsed() > 2 * PATIENCE => {
                    self.findings.add(format!("`midflight submit` did not end in {:?}", 2 * PATIENCE));
                }
                None => still_here.push(visitor),
            }
        }
        self.visitors = still_here; // kills the others
        Ok(())
    }

    /// Asks an executor to leave, if it is old enough.
    pub(super) fn send_away(&mut self, number: usize, away: Duration) {
        let seat = std::mem::replace(&mut self.seats[number], Seat::Empty(Instant::now()));
        self.seats[number] = match seat {
            Seat::Taken { process, since } if since.elapsed() > CHILDHOOD => {
                process.signal(Signal::TERM);
                self.deeds.executors_left += 1;
                Seat::Leaving { process, since: Instant::now(), away }
            }
            other => other,
        };
    }

    /// Kills an executor, even if it is leaving.
    pub(super) fn kill(&mut self, number: usize, away: Duration) {
        if !matches!(self.seats[number], Seat::Empty(_)) {
            self.seats[number] = Seat::Empty(Instant::now() + away);
            self.deeds.executors_killed += 1;
        }
    }

    /// A client with these arguments of `submit`. Killed after `dies_after`, or exits when served.
    pub(super) fn visit(&mut self, args: &[&str], dies_after: Option<Duration>) -> Result<()> {
        let switch = self.switch_address(false).to_string();
        let mut command = quiet(at(self.lab, VISITORS)?);
        command.args(["submit", "--switch", &switch, "--json"]).args(args).stderr(Stdio::null());
        let (process, since) = (Process::start(&mut command)?, Instant::now());
        self.visitors.push(Visitor { process, since, dies_at: dies_after.map(|after| since + after), excused: false });
        Ok(())
    }

    /// All executors and no visitors are present.
    pub(super) fn is_complete(&self, snapshot: &Snapshot) -> bool {
        let slots: u32 = SEATS.iter().map(|plan| plan.slots).sum();
        let all_taken = self.seats.iter().all(|seat| matches!(seat, Seat::Taken { .. }));
        self.visitors.is_empty() && all_taken && snapshot.program.slots >= slots
    }

    /// Starts all missing processes at once.
    pub(super) fn call_back(&mut self) {
        let now = Instant::now();
        for seat in &mut self.seats {
            match seat {
                Seat::Empty(until) => *until = now,
                Seat::Leaving { away, .. } => *away = Duration::ZERO,
                Seat::Taken { .. } => {}
            }
        }
    }

    /// The next one starts after `gap`.
    pub(super) fn change_switch(&mut self, departure: Departure, queue: Queue, gap: Duration) -> Result<()> {
        let before = self.snapshot()?;
        self.bpf_objects()?;
        let young = self.visitors.iter_mut().filter(|visitor| visitor.since.elapsed() < CHILDHOOD);
        young.for_each(|visitor| visitor.excused = true);
        self.stop_switch(departure)?;
        if queue == Queue::Gone && self.engine == LabEngine::Kernel {
            self.detach()?;
        }
        std::thread::sleep(gap);
        let fresh: &[&str] = if queue == Queue::ThrownAway { &["--fresh"] } else { &[] };
        self.start_switch(fresh)?;
        let after = self.snapshot()?;
        if queue == Queue::Kept {
            self.deeds.switches_kept += 1;
            if after.epoch != before.epoch || after.program.tasks.submitted < before.program.tasks.submitted {
                self.findings.add(format!(
                    "a queue was not taken over: epoch {} with {} tasks became {} with {}",
                    before.epoch, before.program.tasks.submitted, after.epoch, after.program.tasks.submitted
                ));
            }
        } else {
            self.deeds.switches_emptied += 1;
            self.expired_before += before.program.tasks.expired;
            if after.epoch == before.epoch {
                self.findings.add(format!("a new queue has the old one's epoch {}", before.epoch));
            }
        }
        Ok(())
    }

    fn start_switch(&mut self, more: &[&str]) -> Result<()> {
        let (listen, http) = (format!("[::]:{}", self.port), format!("127.0.0.1:{DEFAULT_HTTP_PORT}"));
        let mut command = quiet(self.engine.switch(self.lab)?);
        command.args(["--listen", &listen, "--http", &http]);
        if self.engine == LabEngine::Kernel {
            command.arg("--keep");
        }
        let mut switch = processes::switch(command.args(more).stderr(Stdio::piped()))?.0;
        let said = switch.stderr().context("a child without stderr")?;
        std::thread::Builder::new().name("mf-said".into()).spawn(move || pass_on(said))?;
        self.switch = Some(switch);
        Ok(())
    }

    fn stop_switch(&mut self, departure: Departure) -> Result<()> {
        let Some(mut switch) = self.switch.take() else { return Ok(()) };
        switch.signal(if departure == Departure::Asked { Signal::TERM } else { Signal::KILL });
        match switch.wait(PATIENCE)? {
            None => self.findings.add(format!("the switch did not end in {PATIENCE:?}")),
            Some(status) if departure == Departure::Asked && !status.success() => {
                self.findings.add(format!("the switch was asked to end and ended with {status}"));
            }
            Some(status) if departure == Departure::Killed && status.signal().is_none() => {
                self.findings.add(format!("the switch ended with {status} before it was killed"));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Detaches the kept queue.
    fn detach(&self) -> Result<bool> {
        let listen = format!("[::]:{}", self.port);
        let output = quiet(at(self.lab, Place::Switch)?).args(["switch", "--detach", "--listen", &listen]).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!("`midflight switch --detach` failed: {}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Ok(!said.contains("nothing is kept"))
    }

    /// Checks that nothing is left.
    pub(super) fn end(mut self) -> Result<()> {
        self.bpf_objects()?;
        for number in 0..self.seats.len() {
            self.send_away(number, PATIENCE);
        }
        let deadline = Instant::now() + PATIENCE;
        while self.seats.iter().any(|seat| matches!(seat, Seat::Leaving { .. })) && Instant::now() < deadline {
            self.tend()?;
            std::thread::sleep(Duration::from_millis(5));
        }
        self.stop_switch(Departure::Asked)?;
        if self.engine == LabEngine::Kernel {
            if !self.detach()? {
                self.findings.add("nothing was kept of a switch with --keep");
            }
            self.look_for_leftovers()?;
        }
        Ok(())
    }

    fn look_for_leftovers(&self) -> Result<()> {
        let output = self.lab.command(Place::Switch, "ip").args(["link", "show"]).output().context("cannot run ip")?;
        if String::from_utf8_lossy(&output.stdout).contains("prog/xdp") {
            self.findings.add("an XDP program is left on an interface of the switch");
        }
        // The kernel frees them a moment after their last user has gone.
        let deadline = Instant::now() + PATIENCE;
        let mut left: Vec<BpfObject> = self.objects.iter().copied().collect();
        loop {
            let mut still = Vec::new();
            for object in left {
                if object.exists().with_context(|| format!("cannot ask for {object:?}"))? {
                    still.push(object);
                }
            }
            left = still;
            if left.is_empty() || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if !left.is_empty() {
            self.findings.add(format!("of {} BPF objects these are left: {left:?}", self.objects.len()));
        }
        Ok(())
    }
}

/// Prints the log of a switch, without the usual lines about a kept queue.
fn pass_on(said: ChildStderr) {
    for line in BufReader::new(said).lines().map_while(Result::ok) {
        if !line.starts_with("its programs serve on") {
            eprintln!("the switch: {line}");
        }
    }
}

/// Errors only. Ctrl-C must not reach it: the soak handles it.
fn quiet(mut command: Command) -> Command {
    use std::os::unix::process::CommandExt;
    command.env("RUST_LOG", "error").process_group(0);
    command
}
