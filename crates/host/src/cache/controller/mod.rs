//! The controller: one thread that drives the state machine, with a stream to each operator, and a second thread while it plans.

mod log;
mod operators;

pub use operators::StreamsReport;

use crate::background::{Background, runtime};
use crate::cache::control_stream::Secret;
use crate::clock;
use crate::driver::{lock, spawn};
use crate::error::Error;
use crate::process::failing::Failing;
use log::Log;
use midflight_cache::control::controller::Status;
use midflight_cache::control::{Controller, ControllerConfig, Event, Network, PlanWanted};
use midflight_control::cache::PlanStatus;
use midflight_endpoint::{MS, Nanos};
use midflight_placement::failure::Decision;
use midflight_placement::{Method, Options, Plan, solve_or_degrade};
use midflight_wire::cache::control;
use operators::Operators;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// An operator that is silent for this long, or for three requests, is reconnected.
const PATIENCE: Duration = Duration::from_secs(2);
const PUBLISH_EVERY: Nanos = 100 * MS;
/// What the thread does, for the message when it has ended.
const DRIVES: &str = "drives the controller";

/// Options of a controller.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    /// The network.
    pub network: Arc<Network>,
    /// Control address of each operator.
    pub control: Vec<SocketAddr>,
    /// Local address for connections, which operators must permit. `None`: chosen by the kernel.
    pub source: Option<IpAddr>,
    /// Secret shared by controllers and operators.
    pub secret: Secret,
    /// Times and bounds.
    pub config: ControllerConfig,
    /// Options of the planner.
    pub planner: Options,
}

/// The state of a controller at one moment.
#[derive(Clone, Debug)]
pub struct ControllerReport {
    /// Status.
    pub status: Status,
    /// The latest plan.
    pub plan: Option<PlanStatus>,
    /// Streams to operators.
    pub streams: StreamsReport,
}

/// A running controller. Dropping it stops it; the rules it deployed stay in force.
#[derive(Debug)]
pub struct ControllerProcess {
    shared: Arc<Shared>,
    background: Background,
}

#[derive(Debug)]
struct Shared {
    published: Mutex<ControllerReport>,
    /// When the thread last made progress.
    turned: AtomicU64,
    /// Ends the process, so that a standby takes over.
    failing: Arc<Failing>,
}

impl ControllerProcess {
    /// Starts a controller, which connects to operators as they become reachable. On a later failure the thread calls `on_failure`; see
    /// [`failure`](Self::failure).
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub fn start(options: ControllerOptions, on_failure: impl FnOnce() + Send + 'static) -> Result<Self, Error> {
        let runtime = runtime("start the streams to operators")?;
        let ControllerOptions { network, control, source, secret, config, planner } = options;
        let patience = PATIENCE.max(3 * Duration::from_nanos(config.ask_every));
        let controller = Controller::new(clock::now(), config, Arc::clone(&network), rand::random_range(1..=u64::MAX));
        let streams = StreamsReport::new(control.len());
        let published = Mutex::new(ControllerReport { status: controller.status(), plan: None, streams });
        let failing = Arc::new(Failing::new(on_failure));
        let shared = Arc::new(Shared { published, turned: AtomicU64::new(clock::now()), failing });
        let of_thread = Arc::clone(&shared);
        let run = async move || {
            let failing = Arc::clone(&of_thread.failing);
            let _watch = failing.watch(DRIVES);
            let operators = Operators::start(control, source, secret, patience, &failing);
            let (planned, plans) = mpsc::channel(1);
            let driver = Driver {
                shared: of_thread,
                controller,
                network,
                operators,
                planner,
                planned,
                next_publish: 0,
                plan: None,
                log: Log::default(),
            };
            driver.run(plans).await;
        };
        Ok(Self { background: Background::start("mf-controller", runtime, run)?, shared })
    }

    /// The state, at most 100 ms old.
    #[must_use]
    pub fn report(&self) -> ControllerReport {
        lock(&self.shared.published).clone()
    }

    /// Why the controller failed, on one line; `None` if it has not.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failing.why()
    }

    /// Makes its thread panic, for tests.
    #[doc(hidden)]
    pub fn panic_in_thread(&mut self) {
        self.background.panic();
    }

    /// Time since its thread last made progress.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        Duration::from_nanos(clock::now().saturating_sub(self.shared.turned.load(Relaxed)))
    }
}

#[derive(Debug)]
struct Planned {
    number: u64,
    plan: Plan,
    report: PlanStatus,
}

struct Driver {
    shared: Arc<Shared>,
    controller: Controller,
    network: Arc<Network>,
    operators: Operators,
    planner: Options,
    planned: mpsc::Sender<Planned>,
    plan: Option<PlanStatus>,
    next_publish: Nanos,
    log: Log,
}

impl Driver {
    async fn run(mut self, mut plans: mpsc::Receiver<Planned>) {
        loop {
            let now = clock::now();
            let due = self.controller.poll_timeout().min(self.next_publish).saturating_sub(now);
            tokio::select! {
                (operator, message) = self.operators.next() => self.controller.handle(clock::now(), operator, &message),
                Some(planned) = plans.recv() => self.take_plan(planned),
                () = tokio::time::sleep(Duration::from_nanos(due)) => {}
            }
            self.turn(clock::now());
        }
    }

    fn turn(&mut self, now: Nanos) {
        if now >= self.controller.poll_timeout() {
            self.controller.handle_timeout(now);
        }
        while let Some(event) = self.controller.poll_event() {
            match event {
                Event::PlanWanted(wanted) => self.plan(*wanted),
                other => {
                    if matches!(other, Event::SteppedDown(_)) {
                        self.plan = None;
                    }
                    self.log.event(now, &self.network, &other);
                }
            }
        }
        let mut bytes = Vec::new();
        while let Some((operator, message)) = self.controller.poll_transmit() {
            bytes.clear();
            control::write(&message, &mut bytes);
            self.operators.send(operator, &bytes);
        }
        self.shared.turned.store(now, Relaxed);
        if now >= self.next_publish {
            self.next_publish = now + PUBLISH_EVERY;
            let (status, plan, streams) = (self.controller.status(), self.plan.clone(), self.operators.report());
            *lock(&self.shared.published) = ControllerReport { status, plan, streams };
        }
    }

    /// Plans in a separate thread, which sends the plan to `run`.
    fn plan(&self, wanted: PlanWanted) {
        let (planned, options) = (self.planned.clone(), self.planner);
        let started = spawn("mf-planner", move || {
            let began = clock::now();
            let solved = solve_or_degrade(&wanted.instance, &options).solved;
            let report = PlanStatus {
                rsnodes: solved.plan.cost(),
                bound: solved.bound,
                degraded: solved.plan.rsnodes.iter().filter(|rsnode| rsnode.is_none()).count(),
                method: name_of(solved.method).into(),
                took_ms: (clock::now() - began) / MS,
            };
            // Fails if the controller has ended.
            let _ = planned.blocking_send(Planned { number: wanted.number, plan: solved.plan, report });
        });
        if let Err(error) = started {
            tracing::warn!("no plan is made this time: {error}");
        }
    }

    fn take_plan(&mut self, planned: Planned) {
        match self.controller.planned(clock::now(), planned.number, &planned.plan) {
            Ok(Decision::Take) => self.plan = Some(planned.report),
            Ok(Decision::Keep) => {}
            Err(why) => tracing::info!("a plan was not taken: {why}"),
        }
    }
}

fn name_of(method: Method) -> &'static str {
    match method {
        Method::FirstFit => "first-fit",
        Method::Aggregated => "aggregated",
        Method::Full => "full",
    }
}
