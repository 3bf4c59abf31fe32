//! Runs a plan: a pacer thread submits, the calling thread collects.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use midflight_dataplane::TasksConfig;
use midflight_host::{Client, Error, Executor, Job, Switch, TaskError, TaskOutcome, TaskResult, TaskSpec, clock};
use midflight_tasks::functions::Began;

use super::delays::Passage;
use super::outcome::{Ended, Outcome};
use super::pacer::Pacer;
use super::plan::Plan;
use midflight_terminal::progress::Progress;

/// More slots need several executors.
const SLOTS_PER_EXECUTOR: u32 = 1_024;
/// Timeout for the switch's first response, and for the registration of executors.
const START_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });
/// Time from the start of the threads to the first job.
const LEAD_NS: u64 = 20_000_000;
/// If no task ends for this long plus the longest task, the rest counts as lost.
const STALL_PATIENCE: Duration = Duration::from_secs(20);
/// After an interruption, how long to collect results of running tasks.
const GRACE: Duration = Duration::from_secs(1);

/// Ends a run early.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Submits nothing more, collects for another second and reports.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

enum News {
    Ended(u8, TaskOutcome),
    /// `late_ns` after its planned time.
    Submitted {
        tasks: u64,
        late_ns: u64,
    },
    AllSubmitted,
    Refused(midflight_host::Error),
}

/// Runs `plan` through `switch`, or through a switch in this process.
pub fn run(plan: &Plan, switch: Option<SocketAddr>, stop: &Stop, progress: &Progress) -> Result<Outcome> {
    let embedded = switch.is_none().then(|| start_switch(plan)).transpose()?;
    let address = match (&embedded, switch) {
        (Some(embedded), _) => embedded.local_addr(),
        (None, Some(address)) => address,
        (None, None) => bail!("no switch"), // cannot happen: one of the two is always set
    };
    let executors = start_executors(address, plan.executors)?;
    let client = Client::builder().switch(address).connect_timeout(START_PATIENCE).connect();
    let client = client.map_err(|error| match error {
        Error::NotConnected { .. } => anyhow!(no_answer(address)),
        error => error.into(),
    })?;

    let (sender, news) = channel();
    let origin_ns = clock::now() + LEAD_NS;
    let mut collector = Collector { outcome: Outcome::new(origin_ns), plan, stop, progress, ended: 0 };
    std::thread::scope(|scope| {
        let pacer = std::thread::Builder::new().name("mf-pacer".into());
        pacer.spawn_scoped(scope, || submit_all(plan, &client, origin_ns, stop, &sender))?;
        collector.collect(&news)
    })?;
    // Before the client closes, so that it acknowledges all completions.
    drop(client);
    drop(executors);
    Ok(collector.outcome)
}

fn start_switch(plan: &Plan) -> Result<Switch> {
    let mut bounds = TasksConfig::default();
    // Otherwise a burst would wait in the client, and that time would count as dispatch.
    const MOST: u32 = 1 << 20;
    bounds.queue = bounds.queue.max(u32::try_from(plan.tasks).unwrap_or(MOST).min(MOST));
    bounds.slots = bounds.slots.max(plan.executors);
    Ok(Switch::builder().program(bounds).start()?)
}

fn start_executors(switch: SocketAddr, slots: u32) -> Result<Vec<Executor>> {
    let mut executors = Vec::new();
    let mut left = slots;
    while left > 0 {
        let slots = left.min(SLOTS_PER_EXECUTOR);
        let executor = Executor::builder().switch(switch).slots(slots).start()?;
        executors.push((executor, slots));
        left -= slots;
    }
    for (executor, slots) in &executors {
        if !executor.wait_registered(*slots, START_PATIENCE) {
            ensure!(executor.registered() > 0, no_answer(switch));
            bail!("the switch at {switch} has room for {} of {slots} executor slots only", executor.registered());
        }
    }
    Ok(executors.into_iter().map(|(executor, _)| executor).collect())
}

fn no_answer(switch: SocketAddr) -> String {
    format!("no answer from a switch at {switch} within {START_PATIENCE:?}: is `midflight switch` running there?")
}

/// Runs on the pacer's thread.
fn submit_all(plan: &Plan, client: &Client, origin_ns: u64, stop: &Stop, sender: &Sender<News>) {
    let pacer = Pacer::new(&stop.0);
    let function = plan.args.work.name();
    // Cannot fail: the collector outlives this thread.
    let report = |news| drop(sender.send(news));
    for arrival in plan.arrivals() {
        let tasks = arrival.job.tasks.iter().map(|task| {
            let mut spec = TaskSpec::new(function, task.duration_ns.to_be_bytes());
            spec.priority = task.priority;
            spec
        });
        let job: Job = tasks.collect();
        let levels: Vec<u8> = arrival.job.tasks.iter().map(|task| task.priority).collect();
        let ends = sender.clone();
        let Some(late_ns) = pacer.wait(origin_ns + arrival.at_ns) else { break };
        let sink = move |index: usize, outcome| drop(ends.send(News::Ended(levels[index], outcome)));
        match client.submit_to(job, sink) {
            Ok(handle) => report(News::Submitted { tasks: handle.len() as u64, late_ns }),
            Err(error) => return report(News::Refused(error)),
        }
    }
    report(News::AllSubmitted);
}

struct Collector<'a> {
    outcome: Outcome,
    plan: &'a Plan,
    stop: &'a Stop,
    progress: &'a Progress,
    ended: u64,
}

impl Collector<'_> {
    /// Returns when all tasks ended, or the run is interrupted or stalls.
    fn collect(&mut self, news: &Receiver<News>) -> Result<()> {
        const CHECK_EVERY: Duration = Duration::from_millis(100);
        let patience = STALL_PATIENCE + self.plan.longest;
        let (mut all_submitted, mut last_news, mut stopped_at) = (false, Instant::now(), None);
        while !(all_submitted && self.ended == self.outcome.tasks) {
            match news.recv_timeout(CHECK_EVERY) {
                Ok(News::Ended(level, outcome)) => {
                    self.end(level, outcome);
                    last_news = Instant::now();
                }
                Ok(News::Submitted { tasks, late_ns }) => {
                    self.outcome.jobs += 1;
                    self.outcome.tasks += tasks;
                    self.outcome.lateness.record(late_ns);
                    last_news = Instant::now();
                }
                Ok(News::AllSubmitted) => all_submitted = true,
                Ok(News::Refused(error)) => return Err(error.into()),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if self.stop.is_stopped() && stopped_at.is_none() {
                (self.outcome.ended, stopped_at) = (Ended::Interrupted, Some(Instant::now()));
            }
            if stopped_at.is_some_and(|at| all_submitted && at.elapsed() > GRACE) {
                return Ok(());
            }
            if all_submitted && last_news.elapsed() > patience {
                self.outcome.ended = Ended::Stalled;
                self.outcome.lost += self.outcome.tasks - self.ended;
                return Ok(());
            }
        }
        Ok(())
    }

    fn end(&mut self, level: u8, outcome: TaskOutcome) {
        self.ended += 1;
        self.progress.advance();
        match outcome {
            Ok(result) => self.outcome.record(&passage(level, &result), result.attempt),
            Err(Error::Task(TaskError::Failed { .. })) => self.outcome.failed += 1,
            Err(_) => self.outcome.lost += 1,
        }
    }
}

/// `sleep` and `spin` return their start time, by a clock that all processes of a machine share. For an executor on another machine it is
/// computed from the durations.
fn passage(level: u8, result: &TaskResult) -> Passage {
    let timing = &result.timing;
    let fits = |began: &Began| {
        let within = (timing.submitted..=timing.completed).contains(&began.started) && began.asked <= began.started;
        within && began.started + timing.ran_ns <= timing.completed
    };
    let began = Began::decode(&result.value).filter(fits);
    let derived = || timing.completed.saturating_sub(timing.ran_ns).max(timing.submitted);
    let started_ns = began.map_or_else(derived, |began| began.started);
    Passage {
        asked_ns: began.map(|began| began.asked),
        submitted_ns: timing.submitted,
        sent_ns: timing.sent,
        started_ns,
        ended_ns: started_ns + timing.ran_ns,
        queueing_ns: u64::from(timing.waited_us) * 1_000,
        level,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::command::Args;
    use crate::replay::plan::Work;
    use crate::replay::plan::tests::wanted;
    use midflight_host::TaskTiming;

    fn result(value: Vec<u8>) -> TaskResult {
        let timing =
            TaskTiming { submitted: 1_000, sent: 1_500, completed: 9_000, waited_us: 1, held_us: 0, ran_ns: 5_000 };
        TaskResult { value, file: None, attempt: 1, timing }
    }

    #[test]
    fn the_start_is_the_executor_s_where_its_clock_is_ours() {
        let times = |value: Vec<u8>| {
            let passage = passage(2, &result(value));
            (passage.asked_ns, passage.started_ns)
        };
        assert_eq!(times(Began { asked: 900, started: 3_000 }.encode()), (Some(900), 3_000));
        for other_clock in [7u64, 4_001, 1 << 60] {
            let began = Began { asked: 5, started: other_clock };
            assert_eq!(times(began.encode()), (None, 4_000), "completion less running");
        }
        assert_eq!(times(Vec::new()), (None, 4_000));
        assert_eq!(passage(2, &result(Vec::new())).queueing_ns, 1_000);
    }

    #[test]
    fn t1_a_replayed_workload_ends_whole() {
        let small = Args {
            median: Duration::from_micros(200),
            duration: Some(Duration::from_millis(300)),
            executors: Some(8),
            limit: Some(2_000),
            ..wanted()
        };
        let plan = Plan::new(&small).unwrap();
        let outcome = run(&plan, None, &Stop::default(), &Progress::tasks(plan.tasks, true)).unwrap();
        assert_eq!((outcome.tasks, outcome.completed, outcome.lost, outcome.failed), (plan.tasks, plan.tasks, 0, 0));
        assert_eq!(outcome.ended, Ended::Complete);
        assert_eq!(outcome.all.delay.count(), plan.tasks);
        assert!(outcome.all.dispatch.quantile_ns(0.5) > 0);
    }

    #[test]
    fn an_interrupted_run_reports_what_it_has() {
        let plan = Plan::new(&Args { work: Work::Sleep, ..wanted() }).unwrap();
        let stop = Stop::default();
        let stopper = stop.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            stopper.stop();
        });
        let outcome = run(&plan, None, &stop, &Progress::tasks(plan.tasks, true)).unwrap();
        assert_eq!(outcome.ended, Ended::Interrupted);
        assert!(outcome.tasks < plan.tasks && outcome.lost == 0);
    }

    #[test]
    fn a_switch_that_does_not_answer_is_named() {
        let plan = Plan::new(&wanted()).unwrap();
        // A bound socket that never answers.
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let error = run(&plan, Some(address), &Stop::default(), &Progress::tasks(1, true)).unwrap_err().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("midflight switch"), "{error}");
    }
}
