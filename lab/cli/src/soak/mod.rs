//! A soak: a cluster in a lab that loses packets, under a load of all kinds of tasks, while executors, clients and the switch start, stop
//! and are killed. Now and then the load pauses, and the counters of all processes must add up.

mod audit;
mod cluster;
pub(crate) mod command;
mod disturbances;
pub(crate) mod findings;
mod gauges;
pub(crate) mod ledger;
mod load;

use crate::engines::{LabEngine, own_port};
use crate::lab_guard;
use anyhow::Result;
use audit::Audit;
use cluster::{CLIENTS, Cluster, HOSTS};
use disturbances::Disturbances;
use findings::Findings;
use ledger::Ledger;
use load::Loads;
use midflight_host::Client;
use midflight_net::{Lab, Loss, Options};
use midflight_terminal::envelope::Measure;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Clients in this process.
const RESIDENTS: usize = 2;
/// Interval of checks for exited processes and due events.
const TURN: Duration = Duration::from_millis(20);
/// Interval of progress lines.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Interval of rests: a fraction of the whole, within bounds.
const RESTS: u32 = 8;
const REST_LEAST: Duration = Duration::from_secs(8);
const REST_MOST: Duration = Duration::from_secs(120);

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) time: Duration,
    pub(crate) engine: LabEngine,
    pub(crate) loss: Loss,
    pub(crate) seed: u64,
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) measures: Vec<Measure>,
    /// The first ones.
    pub(crate) findings: Vec<String>,
}

/// # Errors
/// If it cannot run, or the switch exited by itself; [`midflight_net::LabError::Interrupted`] once the flag is set.
pub(crate) fn run(plan: &Plan, interrupted: &AtomicBool) -> Result<Report> {
    let options = Options::new(format!("soak{}", std::process::id()), HOSTS).loss(plan.loss);
    let lab = Lab::up_unless(&options, interrupted)?;
    let _kept = KeptQueue::none_yet(plan.engine)?;
    let report = Soak::start(&lab, plan, interrupted)?.hold();
    lab.down()?;
    report
}

/// Detaches on drop what the switch on this port kept.
struct KeptQueue {
    engine: LabEngine,
}

impl KeptQueue {
    fn none_yet(engine: LabEngine) -> Result<Self> {
        let path = format!("/sys/fs/bpf/midflight/{}", own_port());
        anyhow::ensure!(
            !std::path::Path::new(&path).exists(),
            "{path} is there already: start again, for another port"
        );
        Ok(Self { engine })
    }
}

impl Drop for KeptQueue {
    fn drop(&mut self) {
        if self.engine == LabEngine::Kernel {
            // Usually it is already detached.
            let _ = midflight_host::detach(own_port());
        }
    }
}

struct Soak<'a> {
    plan: &'a Plan,
    interrupted: &'a AtomicBool,
    lab: &'a Lab,
    findings: Arc<Findings>,
    cluster: Cluster<'a>,
    clients: Vec<Arc<Client>>,
    ledger: Arc<Ledger>,
    loads: Loads,
    audit: Audit,
    started: Instant,
    next_line: Instant,
}

impl<'a> Soak<'a> {
    fn start(lab: &'a Lab, plan: &'a Plan, interrupted: &'a AtomicBool) -> Result<Self> {
        let findings = Arc::new(Findings::default());
        let cluster = Cluster::start(lab, plan.engine, own_port(), Arc::clone(&findings))?;
        let switch = cluster.switch_address(false);
        let connect = || (0..RESIDENTS).map(|_| Ok(Arc::new(Client::builder().switch(switch).connect_lazy()?)));
        let clients = lab.within(CLIENTS, || connect().collect::<Result<Vec<_>>>())??;
        let ledger = Arc::new(Ledger::new(Arc::clone(&findings)));
        let loads = Loads::start(&clients, &ledger, plan.seed);
        let audit = Audit::new(Arc::clone(&findings));
        let (started, next_line) = (Instant::now(), Instant::now() + LINE_EVERY);
        Ok(Self { plan, interrupted, lab, findings, cluster, clients, ledger, loads, audit, started, next_line })
    }

    fn hold(mut self) -> Result<Report> {
        let rest_every = (self.plan.time / RESTS).clamp(REST_LEAST, REST_MOST);
        let mut disturbances = Disturbances::new(self.plan.engine, self.plan.seed);
        let mut next_rest = Instant::now() + rest_every;
        while self.started.elapsed() < self.plan.time {
            self.turn()?;
            disturbances.go_on(&mut self.cluster)?;
            if Instant::now() >= next_rest {
                self.rest()?;
                next_rest = Instant::now() + rest_every;
            }
        }
        self.rest()?;
        self.end()
    }

    fn turn(&mut self) -> Result<()> {
        lab_guard::unless(self.interrupted, self.lab)?;
        std::thread::sleep(TURN);
        self.cluster.tend()?;
        if Instant::now() >= self.next_line {
            self.next_line += LINE_EVERY;
            self.say();
        }
        Ok(())
    }

    fn say(&self) {
        let (totals, deeds) = (self.ledger.totals(), &self.cluster.deeds);
        eprintln!(
            "{:4.0} s: {} tasks, {} open; executors {} left, {} killed; clients {} served, {} killed; switch {} kept, {} \
             emptied; {} wrong",
            self.started.elapsed().as_secs_f64(),
            totals.submitted,
            totals.open,
            deeds.executors_left,
            deeds.executors_killed,
            deeds.visitors,
            deeds.visitors_killed,
            deeds.switches_kept,
            deeds.switches_emptied,
            self.findings.count()
        );
    }

    /// Starts all missing processes, waits until all tasks have ended, and checks the ledger.
    fn rest(&mut self) -> Result<()> {
        self.loads.gate().pause(true);
        self.cluster.call_back();
        let rest = audit::Rest::new();
        while !rest.is_reached(&self.cluster, self.ledger.totals().open)? {
            if rest.takes_too_long() {
                self.findings.add(rest.why(&self.cluster, &self.ledger.totals())?);
                break;
            }
            self.turn()?;
        }
        self.audit.at_rest(&mut self.cluster, &self.clients)?;
        self.loads.gate().pause(false);
        Ok(())
    }

    fn end(self) -> Result<Report> {
        let Self { findings, cluster, clients, ledger, loads, audit, started, .. } = self;
        let time = started.elapsed();
        let round_trips = loads.end()?;
        let (totals, deeds, expired) = (ledger.totals(), cluster.deeds, cluster.expired()?);
        let repeated: u64 = clients.iter().map(|client| client.counts().protocol.retransmitted).sum();
        let resubmitted: u64 = clients.iter().map(|client| client.counts().protocol.resubmitted).sum();
        drop(clients);
        cluster.end()?;
        let count = |name, value, unit| Measure::count(&format!("soak.{name}"), value, unit);
        let quantity = |name, value, unit| Measure::quantity(&format!("soak.{name}"), value, unit);
        let mut measures = vec![
            quantity("seconds", time.as_secs_f64(), "s"),
            count("tasks", totals.submitted, "tasks"),
            count("ok", totals.ok, "tasks"),
            count("cancelled", totals.cancelled, "tasks"),
            count("lost", totals.open, "tasks"),
            count("wrong", findings.count(), "findings"),
            count("rests", audit.rests(), "times"),
            count("again", totals.again, "tasks"),
            count("expired", expired, "tasks"),
            count("resubmitted", resubmitted, "tasks"),
            count("retransmitted", repeated, "packets"),
            count("executors_left", deeds.executors_left, "times"),
            count("executors_killed", deeds.executors_killed, "times"),
            count("clients_served", deeds.visitors, "times"),
            count("clients_killed", deeds.visitors_killed, "times"),
            count("switch_kept", deeds.switches_kept, "times"),
            count("switch_emptied", deeds.switches_emptied, "times"),
            quantity("rtt_p50_us", round_trips.value_at_quantile(0.5) as f64, "us"),
            quantity("rtt_max_us", round_trips.max() as f64, "us"),
        ];
        measures.extend(audit.measures());
        Ok(Report { measures, findings: findings.first() })
    }
}
