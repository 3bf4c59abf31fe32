//! The jobs of a scenario's clients. Each task's argument has its duration, then its planned submission time, so that
//! its delay is known when it starts.

use super::parts::{PlacesPart, Scenario, ShapeName, mask};
use super::values::Time;
use super::{Notes, ScenarioError};
use crate::tasks::Submission;
use crate::tasks::Submissions;
use crate::{Purpose, stream};
use midflight_endpoint::Nanos;
use midflight_tasks::client::{Argument, Task};
use midflight_tasks::place::Preference;
use midflight_workload::{ReadOptions, Shape, Target, TaskSpec, Workload, draw_level, generate, read_file};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

/// The time of the first job, when executors have registered.
pub(super) const SETTLED: Nanos = 10_000_000;
const ONE_LEVEL: u8 = 1;

#[derive(Clone, Debug)]
pub(super) struct Jobs {
    seed: u64,
    demands: Rc<[(f64, u8)]>,
    places: PlacesPart,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// Drawn as they are submitted.
    Equal {
        gap_ns: f64,
        until: Nanos,
        median: Nanos,
        tasks: u32,
        priorities: bool,
    },
    Listed {
        workload: Rc<Workload>,
        arrivals: Rc<Vec<(Nanos, u32)>>,
        clients: usize,
    },
}

impl Jobs {
    pub(super) fn new(scenario: &Scenario, file: &Path, notes: &mut Notes) -> Result<Self, ScenarioError> {
        let (part, slots) = (&scenario.workload, scenario.cluster.all_slots());
        let demands = part.demands.iter().map(|demand| (demand.share, mask(&demand.resources))).collect();
        let of = |source| Self { seed: scenario.seed, demands, places: part.places.clone(), source };
        if part.trace.is_none() && part.shape == ShapeName::Equal {
            let work = part.median.0 as f64 * f64::from(part.tasks) * f64::from(scenario.cluster.clients);
            return Ok(of(Source::Equal {
                gap_ns: work / (part.load * slots as f64),
                until: scenario.duration.0,
                median: part.median.0,
                tasks: part.tasks,
                priorities: part.priorities,
            }));
        }
        let mut workload = match &part.trace {
            Some(trace) => {
                let trace = file.parent().unwrap_or(Path::new("")).join(trace);
                let options = ReadOptions { format: part.format, ..ReadOptions::default() };
                let read = read_file(&trace, &options);
                let reading = read.map_err(|error| ScenarioError::Trace { file: file.to_path_buf(), error })?;
                notes.malformed = reading.malformed;
                reading.workload
            }
            None => {
                let work = part.load * slots as f64 * scenario.duration.0 as f64 / part.median.0 as f64;
                generate(&Shape { work, ..Shape::default() }, scenario.seed)
            }
        };
        let target =
            Target { median_ns: part.median.0, load: part.load, executors: slots.try_into().unwrap_or(u32::MAX) };
        workload.scale(&target).map_err(|error| ScenarioError::Scale { file: file.to_path_buf(), error })?;
        if part.priorities {
            workload.draw_priorities(scenario.seed);
        } else {
            workload.set_priorities(ONE_LEVEL);
        }
        let until = Some(scenario.duration.0);
        let arrivals = workload.arrivals(until, scenario.seed);
        let arrivals = arrivals.map(|arrival| (SETTLED + arrival.at_ns, arrival.index as u32)).collect();
        let clients = scenario.cluster.clients as usize;
        Ok(of(Source::Listed { workload: Rc::new(workload), arrivals: Rc::new(arrivals), clients }))
    }

    /// The jobs of one client. Counts itself in `live` until it has returned the last.
    pub(super) fn of(&self, client: u32, live: &Rc<Cell<u32>>) -> Submissions {
        live.set(live.get() + 1);
        let live = Live(live.clone());
        let seed = self.seed;
        let details = Details {
            random: stream(seed, Purpose::Tasks, client.into()),
            demands: self.demands.clone(),
            places: self.places.clone(),
        };
        match &self.source {
            Source::Equal { gap_ns, until, median, tasks, priorities } => Box::new(Equal {
                live: Some(live),
                at: 0.0,
                gap_ns: *gap_ns,
                until: *until as f64,
                task: TaskSpec { duration_ns: *median, priority: ONE_LEVEL },
                tasks: *tasks,
                priorities: *priorities,
                details,
                random: stream(seed, Purpose::Arrivals, client.into()),
                jid: 0,
            }),
            Source::Listed { workload, arrivals, clients } => Box::new(Listed {
                live: Some(live),
                workload: workload.clone(),
                arrivals: arrivals.clone(),
                details,
                next: client as usize,
                step: *clients,
            }),
        }
    }
}

struct Live(Rc<Cell<u32>>);

impl Drop for Live {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

struct Equal {
    live: Option<Live>,
    at: f64,
    gap_ns: f64,
    until: f64,
    task: TaskSpec,
    tasks: u32,
    priorities: bool,
    details: Details,
    random: Pcg64,
    jid: u32,
}

impl Iterator for Equal {
    type Item = Submission;

    fn next(&mut self) -> Option<Submission> {
        self.at -= (1.0 - self.random.random::<f64>()).ln() * self.gap_ns;
        if self.at >= self.until {
            self.live = None;
            return None;
        }
        let (at, jid) = (SETTLED + self.at as Nanos, self.jid);
        self.jid += 1;
        let tasks = (0..self.tasks).map(|_| {
            let priority = if self.priorities { draw_level(&mut self.details.random) } else { ONE_LEVEL };
            self.details.task(TaskSpec { priority, ..self.task }, at)
        });
        let tasks = tasks.collect();
        Some(Submission { at, jid, tasks })
    }
}

struct Listed {
    live: Option<Live>,
    workload: Rc<Workload>,
    arrivals: Rc<Vec<(Nanos, u32)>>,
    details: Details,
    next: usize,
    step: usize,
}

impl Iterator for Listed {
    type Item = Submission;

    fn next(&mut self) -> Option<Submission> {
        let Some(&(at, index)) = self.arrivals.get(self.next) else {
            self.live = None;
            return None;
        };
        let jid = self.next as u32;
        self.next += self.step;
        let job = &self.workload.jobs()[index as usize];
        Some(Submission { at, jid, tasks: job.tasks.iter().map(|spec| self.details.task(*spec, at)).collect() })
    }
}

struct Details {
    random: Pcg64,
    /// Shares of the tasks, and the resources that they need.
    demands: Rc<[(f64, u8)]>,
    places: PlacesPart,
}

impl Details {
    fn task(&mut self, spec: TaskSpec, at: Nanos) -> Task {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&spec.duration_ns.to_be_bytes());
        bytes[8..].copy_from_slice(&at.to_be_bytes());
        let argument = Argument::Inline { bytes, length: 16 };
        let (place, prefer) = self.place();
        Task { priority: spec.priority, resources: self.resources(), prefer, ..Task::new(place, argument) }
    }

    /// The place of a task's data, as its function, and its placement preference.
    fn place(&mut self) -> (u32, Option<Preference>) {
        if self.places.count == 0 {
            return (1, None);
        }
        let place = PlacesPart::number(self.random.random_range(0..self.places.count));
        let ms = |patience: Time| patience.0.div_ceil(1_000_000) as u32;
        (place, self.places.patience.map(|patience| Preference { place, patience_ms: ms(patience) }))
    }

    fn resources(&mut self) -> u8 {
        if self.demands.is_empty() {
            return 0;
        }
        let mut point = self.random.random::<f64>();
        for &(share, resources) in &*self.demands {
            if point < share {
                return resources;
            }
            point -= share;
        }
        0
    }
}

/// When a task should have been submitted, and how long it runs.
pub(super) fn planned(argument: &[u8; 16]) -> (Nanos, Nanos) {
    let word = |from: usize| argument[from..from + 8].iter().fold(0, |word, &byte| word << 8 | Nanos::from(byte));
    (word(8), word(0))
}
