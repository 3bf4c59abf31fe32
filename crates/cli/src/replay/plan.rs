//! The plan of a replay: jobs from a file or the generator, scaled, with priorities.

use midflight_terminal::units;
use std::time::Duration;

use super::command::Args;
use anyhow::{Result, ensure};
use midflight_host::clock::nanos;
use midflight_workload::{
    Arrival, Format, ReadOptions, Reading, Scale, Shape, Target, Workload, generate, ideal_end_ns, read_file,
};

/// Duration of a generated workload without `--duration`.
const GENERATED: Duration = Duration::from_secs(12);
/// Level of all tasks with `--priorities off`.
const ONE_LEVEL: u8 = 1;

/// What tasks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// Wait: any number of executors fits any machine
    Sleep,
    /// Compute: needs a core for each executor
    Spin,
}

impl Work {
    /// The built-in function's name, also for display.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleep => midflight_tasks::functions::SLEEP,
            Self::Spin => midflight_tasks::functions::SPIN,
        }
    }
}

/// The plan of a replay.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Arguments of the command.
    pub args: Args,
    /// Tasks that may run at once.
    pub executors: u32,
    /// Source of the jobs, for display.
    pub source: String,
    /// Its jobs, scaled.
    pub workload: Workload,
    /// How they were scaled.
    pub scale: Scale,
    /// Malformed lines of the file.
    pub malformed: u64,
    /// Warnings from reading the file.
    pub notes: Vec<String>,
    /// Jobs and tasks to submit.
    pub jobs: u64,
    /// Tasks to submit.
    pub tasks: u64,
    planned_ns: u64,
    /// When the last task would end if scheduling took no time.
    ideal_ns: u64,
    /// Duration of the longest task.
    pub longest: Duration,
    until_ns: Option<u64>,
}

impl Plan {
    /// Reads or generates the jobs, scales them and draws priorities.
    pub fn new(args: &Args) -> Result<Self> {
        let (mut plan, scale_error_hint) = match &args.file {
            Some(file) => {
                let format = args.format.map(Format::from);
                let reading = read_file(file, &ReadOptions { format, strict: args.strict, ..ReadOptions::default() })?;
                let notes = notes(&reading);
                let mut plan = Self::of(args, format!("{} ({:?})", file.display(), reading.format), reading.workload);
                (plan.malformed, plan.notes, plan.until_ns) = (reading.malformed, notes, args.duration.map(nanos));
                (plan, file.display().to_string())
            }
            None => {
                let shape = Shape { work: work_in_medians(args)?, ..Shape::default() };
                let source = format!("generated, seed {}", args.seed);
                (Self::of(args, source, generate(&shape, args.seed)), "the generated workload".into())
            }
        };
        let target = Target { median_ns: nanos(args.median), load: args.load, executors: plan.executors };
        let scaled = plan.workload.scale(&target);
        plan.scale = scaled.map_err(|error| anyhow::anyhow!("{scale_error_hint}: {error}"))?;
        if args.has_priorities() {
            plan.workload.draw_priorities(args.seed);
        } else {
            plan.workload.set_priorities(ONE_LEVEL);
        }
        plan.count()?;
        Ok(plan)
    }

    fn of(args: &Args, source: String, workload: Workload) -> Self {
        Self {
            args: args.clone(),
            executors: args.executors(),
            source,
            workload,
            scale: Scale { f: 1.0, g: 1.0, work_s: 0.0, span_s: 0.0, rounded_to_zero: 0 },
            malformed: 0,
            notes: Vec::new(),
            jobs: 0,
            tasks: 0,
            planned_ns: 0,
            ideal_ns: 0,
            longest: Duration::ZERO,
            until_ns: None,
        }
    }

    fn count(&mut self) -> Result<()> {
        let (mut jobs, mut tasks, mut planned_ns, mut longest_ns) = (0, 0, 0, 0);
        for arrival in self.workload.arrivals(self.until_ns, self.args.seed) {
            if self.args.limit.is_some_and(|limit| tasks >= limit) {
                break;
            }
            jobs += 1;
            tasks += arrival.job.tasks.len() as u64;
            planned_ns = arrival.at_ns;
            longest_ns = longest_ns.max(arrival.job.tasks.iter().map(|task| task.duration_ns).max().unwrap_or(0));
        }
        ensure!(jobs > 0, "nothing to play: --duration and --limit leave no job");
        (self.jobs, self.tasks, self.planned_ns) = (jobs, tasks, planned_ns);
        self.longest = Duration::from_nanos(longest_ns);
        self.ideal_ns = ideal_end_ns(self.arrivals(), self.executors);
        Ok(())
    }

    /// Jobs to submit, with times relative to the first.
    pub fn arrivals(&self) -> impl Iterator<Item = Arrival<'_>> {
        self.workload.arrivals(self.until_ns, self.args.seed).take(usize::try_from(self.jobs).unwrap_or(usize::MAX))
    }

    /// From the first arrival to the last, in seconds.
    pub fn planned_s(&self) -> f64 {
        self.planned_ns as f64 / 1e9
    }

    /// From the first arrival to the last end if scheduling cost nothing, in seconds.
    pub fn ideal_s(&self) -> f64 {
        self.ideal_ns as f64 / 1e9
    }

    /// Describes the plan, line by line.
    pub fn describe(&self) -> Vec<String> {
        let mut lines =
            vec![format!("{}: {} jobs, {} tasks in {:.1} s", self.source, self.jobs, self.tasks, self.planned_s())];
        lines.push(format!(
            "durations / {:.4} (f): median {}, sum {:.1} s; arrivals × {:.4} (g): load {} on {} executors that {}",
            self.scale.f,
            units::time(nanos(self.args.median)),
            self.scale.work_s,
            self.scale.g,
            self.args.load,
            self.executors,
            self.args.work.name()
        ));
        lines.extend(self.notes.iter().cloned());
        lines
    }
}

/// Work to generate for the requested load and duration, in medians of a task.
fn work_in_medians(args: &Args) -> Result<f64> {
    // The limit of tasks in a trace; a task has six medians of work on average.
    const MOST_TASKS: f64 = (32 << 20) as f64;
    let seconds = args.duration.unwrap_or(GENERATED).as_secs_f64();
    let work = args.load * f64::from(args.executors()) * seconds / args.median.as_secs_f64();
    ensure!(
        work / 6.0 <= MOST_TASKS,
        "that would be a workload of about {:.1e} tasks, at most {MOST_TASKS:.1e} are generated: ask for a lower --load, \
         a shorter --duration or a longer --median",
        work / 6.0
    );
    Ok(work)
}

fn notes(reading: &Reading) -> Vec<String> {
    let mut notes: Vec<String> = reading.shown.iter().map(ToString::to_string).collect();
    if reading.malformed > reading.shown.len() as u64 {
        notes.push(format!("{} of {} lines are malformed; the first are above", reading.malformed, reading.lines));
    }
    notes.extend(reading.skipped().map(|(why, rows)| format!("{rows} rows left out: {}", why.as_str())));
    notes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::replay::command::Switched;

    /// The arguments of a command line without options.
    pub(crate) fn wanted() -> Args {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        <Line as clap::Parser>::parse_from(["replay"]).args
    }

    pub(crate) fn plan() -> Plan {
        Plan::new(&wanted()).unwrap()
    }

    #[test]
    fn without_a_file_and_a_duration_the_plan_lasts_about_twelve_seconds() {
        let plan = plan();
        assert!((10.0..15.0).contains(&plan.planned_s()), "{}", plan.planned_s());
        assert!(plan.longest < Duration::from_millis(2_500), "{:?}", plan.longest);
        let median_ns = plan.workload.duration_quantile_ns(0.5).unwrap();
        assert!((4_990_000..=5_010_000).contains(&median_ns), "{median_ns}");
    }

    #[test]
    fn the_generator_fills_the_duration_asked_for() {
        let plan = Plan::new(&Args { duration: Some(Duration::from_secs(60)), ..wanted() }).unwrap();
        assert!((50.0..75.0).contains(&plan.planned_s()), "{}", plan.planned_s());
    }

    #[test]
    fn a_limit_ends_with_the_job_that_reaches_it() {
        let plan = Plan::new(&Args { limit: Some(100), ..wanted() }).unwrap();
        assert!((100..200).contains(&plan.tasks), "{}", plan.tasks);
        assert_eq!(plan.arrivals().map(|arrival| arrival.job.tasks.len() as u64).sum::<u64>(), plan.tasks);
    }

    #[test]
    fn without_priorities_all_tasks_share_one_level() {
        let plan = Plan::new(&Args { priorities: Switched::Off, ..wanted() }).unwrap();
        assert!(plan.arrivals().flat_map(|arrival| &arrival.job.tasks).all(|task| task.priority == ONE_LEVEL));
    }

    #[test]
    fn what_cannot_be_played_is_an_error_with_the_reason() {
        let error = |wanted: Args| format!("{:#}", Plan::new(&wanted).unwrap_err());
        assert!(error(Args { limit: Some(0), ..wanted() }).contains("--limit"));
        assert!(error(Args { load: 0.0, ..wanted() }).contains("the load must be greater than 0"));
        let missing = Args { file: Some("/nonexistent.tr".into()), ..wanted() };
        assert!(error(missing).starts_with("/nonexistent.tr: "));
        assert!(error(Args { load: 1e300, ..wanted() }).contains("lower --load"));
    }
}
