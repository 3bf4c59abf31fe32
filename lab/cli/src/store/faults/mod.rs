//! `midflight-lab faults`: a store in a lab, whose replicas, switches and links fail while clients use it. The history must be linearizable
//! (R1 to R4), and afterwards the store must serve again (R5, R6).

pub(crate) mod command;
mod kinds;
mod outcome;
mod run;

use super::cluster::{Cluster, Ground, Size};
use crate::engines::{LabEngine, Named};
use anyhow::{Context, Result};
use kinds::Kind;
use midflight_host::store::StoreClient;
use midflight_net::{Lab, Options};
use midflight_spec::store::history::Verdict;
use midflight_terminal::progress::Progress;
use outcome::Outcome;
use run::Run;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Hosts with clients.
const CLIENTS: usize = 3;

struct Plan {
    kinds: Vec<&'static Kind>,
    engines: Vec<LabEngine>,
    /// Runs of each kind with each engine.
    runs: usize,
    replicas: usize,
    /// Directory for histories with a violation.
    out: PathBuf,
}

/// Stops early if the flag is set.
fn hold(plan: &Plan, interrupted: &AtomicBool) -> Result<Vec<Outcome>> {
    let all = plan.engines.len() * plan.kinds.len() * plan.runs;
    let progress = Progress::counted(Some(all as u64), "faults", "{bar:40} {human_pos}/{human_len} {msg}, {elapsed}");
    let mut outcomes = Vec::new();
    for &engine in &plan.engines {
        let size = Size { replicas: plan.replicas, switches: 2, clients: CLIENTS, ..Size::USUAL };
        let options = Options::new(format!("store{}", std::process::id()), size.hosts());
        let lab = Lab::up_unless(&options.xdp(engine == LabEngine::Kernel), interrupted)?;
        for kind in &plan.kinds {
            let size = Size { small_disks: kind.needs_small_disks(), ..size };
            let campaign = Campaign { lab: &lab, engine, kind, size, plan, progress: &progress, interrupted };
            let outcome = campaign.hold();
            outcomes.push(outcome?);
        }
        lab.down()?;
    }
    progress.finish();
    Ok(outcomes)
}

struct Campaign<'a> {
    lab: &'a Lab,
    engine: LabEngine,
    kind: &'static Kind,
    size: Size,
    plan: &'a Plan,
    progress: &'a Progress,
    interrupted: &'a AtomicBool,
}

impl<'a> Campaign<'a> {
    fn hold(&self) -> Result<Outcome> {
        let mut outcome = Outcome::new(self.engine, self.kind);
        let mut store = None;
        for number in 1..=self.plan.runs {
            if self.interrupted.load(Relaxed) {
                break;
            }
            let (mut cluster, clients) = store.take().map_or_else(|| self.store(), Ok)?;
            let run = run::run(&mut cluster, &clients, self.kind)?;
            let finding = self.judge(number, &run, &cluster)?;
            outcome.add(&run);
            self.progress.advance_by(self.kind.name);
            if let Some(finding) = finding {
                // Ctrl-C reaches all processes of a terminal.
                if !self.interrupted.load(Relaxed) {
                    self.progress.suspend(|| eprintln!("WRONG: {finding}"));
                }
            } else if cluster.bring_home().is_ok() {
                store = Some((cluster, clients));
            }
        }
        Ok(outcome)
    }

    fn store(&self) -> Result<(Cluster<'a>, Vec<StoreClient>)> {
        let mut cluster = Cluster::start(Ground::Lab(self.lab, self.engine), self.size)?;
        cluster.bring_home().context("a new store does not begin to serve")?;
        let clients = run::clients(&cluster)?;
        Ok((cluster, clients))
    }

    /// Writes the evidence to files.
    fn judge(&self, number: usize, run: &Run, cluster: &Cluster<'_>) -> Result<Option<String>> {
        let what = match (&run.verdict, &run.stuck) {
            (Verdict::Linearizable, None) => return Ok(None),
            (Verdict::Linearizable, Some(why)) => format!("the store does not serve again: {why}"),
            (Verdict::Violation(violation), _) => violation.to_string(),
            (Verdict::TooHard { key, operations, .. }, _) => {
                format!("key {key:?} with its {operations} operations is too hard for the search")
            }
        };
        let name = format!("{}-{}-{number}", self.kind.name, self.engine.name());
        let (history, said) = ["jsonl", "log"].map(|end| self.plan.out.join(format!("{name}.{end}"))).into();
        write(&history, |to| run.history.write(to))?;
        write(&said, |to| to.write_all(cluster.said().as_bytes()))?;
        let files = format!("see {} and {}", history.display(), said.display());
        Ok(Some(format!("{} with engine {}: {what}\n{files}", self.kind.name, self.engine.name())))
    }
}

fn write(path: &Path, content: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut to = BufWriter::new(File::create(path).with_context(cannot)?);
    content(&mut to).and_then(|()| to.flush()).with_context(cannot)
}
