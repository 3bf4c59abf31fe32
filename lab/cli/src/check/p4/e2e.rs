//! Midflight's client and executors with BMv2, in a lab: each task's caller gets its result, even if the switch is killed.

use crate::engines::at;
use crate::lab_guard::LabGuard;
use crate::processes::{Process, executor_with, switch};
use anyhow::{Context, Result, ensure};
use midflight_control::config::DEFAULT_PORT;
use midflight_host::{Client, Job, JobHandle, TaskSpec};
use midflight_net::{HOST_INTERFACE, Lab, Options, Place, SWITCH_IPV4};
use midflight_p4::Program;
use midflight_p4::watch::{Hazard, Trace, Watch};
use midflight_terminal::envelope::Measure;
use midflight_terminal::switches::connect;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const CLIENT: Place = Place::Host(0);
const EXECUTORS: [(Place, &str); 2] = [(Place::Host(1), "r0"), (Place::Host(2), "r0,r1")];
const SLOTS: u32 = 4;
/// Room for eight tasks per level, so that the queue is often full. Slots poll rarely: a busy BMv2 may forward only a few hundred packets a
/// second.
const CONFIG: &str = "[tasks]\nqueue = 32\n";
const POLL: &str = "50ms";
/// Resources that tasks require, in turn: none, either one, both.
const REQUIRED: [u8; 4] = [0, 1, 2, 3];
/// Tasks per job, and recent jobs in flight. If a client sends more than BMv2 answers in time, it retransmits, and queues its tasks again.
/// Jobs that wait for a timeout, 10 s at first, delay no others.
const JOB: u32 = 8;
const YOUNG_MAX: usize = 6;
const YOUNG: Duration = Duration::from_secs(5);
/// All jobs in flight, including those that wait for a timeout.
const OPEN_MAX: usize = 64;
/// The longest time without a result: several timeouts of a client, each twice the one before.
const PATIENCE: Duration = Duration::from_secs(180);
/// Time for the engine to report that its switch was killed.
const NAMED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(2);
const WATCH_FOR: Duration = Duration::from_millis(100);

pub(super) struct Outcome {
    program: Program,
    tasks: u64,
    /// Tasks whose caller got a failure, or that ran on an executor without the resources.
    wrong: u64,
    losses: BTreeMap<Option<Hazard>, u64>,
    gone: u64,
    resubmitted: u64,
    named_ms: f64,
    seconds: f64,
}

impl Outcome {
    /// Accepted and never assigned by the running switch.
    fn lost(&self) -> u64 {
        self.losses.values().sum()
    }

    /// All callers get all results. The safe program loses nothing; each loss of the published one has a drop reason.
    pub(super) fn is_right(&self) -> bool {
        let is_explained = match self.program {
            Program::Safe => self.lost() == 0,
            Program::Published => !self.losses.contains_key(&None),
        };
        self.wrong == 0 && is_explained
    }

    pub(super) fn told(&self) -> String {
        let Self { program, tasks, wrong, gone, resubmitted, named_ms, seconds, .. } = self;
        let names = self.losses.iter().map(|(hazard, times)| format!("{times} by {}", name(*hazard)));
        let names: Vec<_> = names.collect();
        let lost = if names.is_empty() { "none".into() } else { names.join(", ") };
        format!(
            "{}, client and executors: {tasks} tasks in {seconds:.1} s, {wrong} wrong; lost by the living switch: {lost}; {gone} submitted \
             again after a time-out, {resubmitted} after the kill, which was named after {named_ms:.0} ms\n",
            program.name()
        )
    }

    pub(super) fn measures(&self) -> Vec<Measure> {
        let named = |name: &str| format!("p4.e2e.{}.{name}", self.program.name());
        let mut measures = vec![
            Measure::count(&named("tasks"), self.tasks, "tasks"),
            Measure::count(&named("lost"), self.lost(), "tasks"),
            Measure::count(&named("wrong"), self.wrong, "tasks"),
            Measure::count(&named("timed_out"), self.gone, "tasks"),
            Measure::count(&named("resubmitted"), self.resubmitted, "tasks"),
            Measure::quantity(&named("kill_named_ms"), self.named_ms, "ms"),
            Measure::quantity(&named("seconds"), self.seconds, "s"),
        ];
        let by_hazard = self
            .losses
            .iter()
            .map(|(hazard, times)| Measure::count(&named(&format!("lost.{}", name(*hazard))), *times, "tasks"));
        measures.extend(by_hazard);
        measures
    }
}

fn name(hazard: Option<Hazard>) -> String {
    hazard.map_or_else(|| "unknown".into(), |hazard| format!("hazard_{}", hazard as u8))
}

/// Kills the switch when half of the tasks are done.
pub(super) fn run(program: Program, tasks: u32, guard: &LabGuard) -> Result<Outcome> {
    let lab = guard.up(&Options::new(format!("p4-{}", std::process::id()), 1 + EXECUTORS.len()))?;
    make_plain(&lab)?;
    let folder = midflight_terminal::files::temporary("midflight-p4-")?;
    guard.remove_too(folder.path());
    let files = Files {
        config: folder.path().join("switch.toml"),
        log: folder.path().join("switch.log"),
        scratch: folder.path().into(),
    };
    std::fs::write(&files.config, CONFIG).context("cannot write a configuration")?;
    let (mut serving, address) = start(&lab, program, &files)?;
    let mut executors = Vec::new();
    for (place, resources) in EXECUTORS {
        executors.push(executor_with(at(&lab, place)?, address, SLOTS, &["--resources", resources])?);
    }
    let (trace, is_over) = (Mutex::new(Trace::default()), AtomicBool::new(false));
    let watch = lab.within(Place::Switch, Watch::open)??;
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| follow(&watch, &trace, &is_over));
        let ran = lab.within(CLIENT, || {
            let _ends = Sets(&is_over);
            all(&lab, program, &files, address, tasks, &trace, &mut serving)
        });
        watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        ran?
    })
}

/// A switch's configuration, stderr, and build directory.
struct Files {
    config: PathBuf,
    log: PathBuf,
    scratch: PathBuf,
}

struct Sets<'f>(&'f AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn follow(watch: &Watch, trace: &Mutex<Trace>, is_over: &AtomicBool) -> Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        watch.follow(&mut trace.lock().unwrap_or_else(PoisonError::into_inner), WATCH_FOR)?;
    }
    Ok(())
}

/// Makes frames look as on a wire: hosts send single frames with complete checksums, and the kernel leaves forwarding to the switch.
fn make_plain(lab: &Lab) -> Result<()> {
    for host in 0..lab.hosts().len() {
        lab.checksums_by_hardware(Place::Host(host), HOST_INTERFACE, false)?;
    }
    let off = lab.within(Place::Switch, || std::fs::write("/proc/sys/net/ipv4/ip_forward", "0"))?;
    off.context("cannot switch off forwarding by the kernel")
}

fn start(lab: &Lab, program: Program, files: &Files) -> Result<(Process, SocketAddr)> {
    let engine = match program {
        Program::Safe => "bmv2",
        Program::Published => "bmv2-published",
    };
    let listen = SocketAddr::from((SWITCH_IPV4, DEFAULT_PORT)).to_string();
    let mut command = at(lab, Place::Switch)?;
    command.args(["pipeline", "--engine", engine, "--poll", POLL, "--interface", &lab.interfaces().join(",")]);
    let log = File::create(&files.log).context("cannot write a switch's log")?;
    command
        .args(["--listen", &listen, "--http", "off", "--config"])
        .arg(&files.config)
        .env("TMPDIR", &files.scratch)
        .stderr(log);
    switch(&mut command).with_context(|| std::fs::read_to_string(&files.log).unwrap_or_default())
}

fn all(
    lab: &Lab,
    program: Program,
    files: &Files,
    address: SocketAddr,
    tasks: u32,
    trace: &Mutex<Trace>,
    serving: &mut Process,
) -> Result<Outcome> {
    let began = Instant::now();
    let client = connect(vec![address])?;
    let (mut open, mut named) = (Open::default(), None);
    for first in (0..tasks).step_by(JOB as usize) {
        if named.is_none() && first >= tasks / 2 {
            named = Some(kill(serving, &files.log)?);
            trace.lock().unwrap_or_else(PoisonError::into_inner).restart();
            (*serving, _) = start(lab, program, files)?;
        }
        open.wait_for_room()?;
        open.jobs.push((Instant::now(), submit(&client, first..tasks.min(first + JOB))?));
    }
    let wrong = open.wait()?;
    let named = named.unwrap_or_default();
    let counts = client.counts().protocol;
    // Wait for the switch's last packets.
    std::thread::sleep(2 * WATCH_FOR);
    let trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(trace.frames() > 0, "no frame of the switch was seen: the results say nothing of losses");
    Ok(Outcome {
        program,
        tasks: tasks.into(),
        wrong,
        losses: trace.losses(),
        gone: counts.gone,
        resubmitted: counts.resubmitted,
        named_ms: named.as_secs_f64() * 1e3,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Tasks of all levels, each with one of the requirements.
fn submit(client: &Client, numbers: Range<u32>) -> Result<JobHandle> {
    let task = |number: u32| {
        let mut task = TaskSpec::new("noop", Vec::new());
        task.priority = 1 + (number % 4) as u8;
        task.resources = REQUIRED[(number / 4 % 4) as usize];
        task
    };
    Ok(client.submit(numbers.map(task).collect::<Job>())?)
}

/// Jobs in flight, with their submission times.
#[derive(Default)]
struct Open {
    jobs: Vec<(Instant, JobHandle)>,
    /// Tasks without a result.
    wrong: u64,
}

impl Open {
    fn wait_for_room(&mut self) -> Result<()> {
        let began = Instant::now();
        loop {
            self.collect();
            let young = self.jobs.iter().filter(|(submitted, _)| submitted.elapsed() < YOUNG).count();
            if young < YOUNG_MAX && self.jobs.len() < OPEN_MAX {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "{} jobs have no result after {PATIENCE:?}", self.jobs.len());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn collect(&mut self) {
        for (_, job) in self.jobs.extract_if(.., |(_, job)| job.open() == 0) {
            self.wrong += job.wait().iter().filter(|outcome| outcome.is_err()).count() as u64;
        }
    }

    /// Returns the number of tasks without a result.
    fn wait(mut self) -> Result<u64> {
        for (_, job) in &self.jobs {
            ensure!(job.wait_timeout(PATIENCE), "{} tasks of a job have no result after {PATIENCE:?}", job.open());
        }
        self.collect();
        Ok(self.wrong)
    }
}

/// Returns how long the engine took to report it.
fn kill(serving: &mut Process, log: &Path) -> Result<Duration> {
    let children = format!("/proc/{0}/task/{0}/children", serving.id());
    let children = std::fs::read_to_string(&children).with_context(|| format!("cannot read {children}"))?;
    let child = children.split_whitespace().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    kill_process(child.context("the engine has no simple_switch")?, Signal::KILL)
        .context("cannot kill simple_switch")?;
    let killed = Instant::now();
    let ended = serving.wait(NAMED_WITHIN)?;
    let named = killed.elapsed();
    let said = std::fs::read_to_string(log).context("cannot read what a switch says")?;
    let is_named = ended.is_some_and(|ended| ended.code() == Some(1)) && said.contains("was ended by signal 9");
    ensure!(is_named, "the engine did not say within {NAMED_WITHIN:?} that its switch was killed; it said: {said}");
    Ok(named)
}
