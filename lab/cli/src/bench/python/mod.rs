//! `midflight-lab bench python`: calls of Python functions, and whole programs, on Midflight, joblib's loky, Dask and Ray, in turns.
//!
//! Scripts in bench/python prepare a system (`setup`) and run one turn of it (`run`), which prints a line of JSON. This file calls them,
//! stops every process that they leave behind, and compares. Two systems never run at the same time, and each turn has its own cluster.

mod findings;
mod table;
mod turn;

use super::keeper::Keeper;
use super::{How, child};
use crate::engines::Named;
use anyhow::{Context, Result, anyhow, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use findings::Measured;
use midflight_terminal::envelope::Envelope;
use midflight_terminal::{stdout, usage};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use turn::Turn;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench python                       all; the first time also downloads them
  midflight-lab bench python --quick --only midflight,joblib
  midflight-lab bench python --json
  ./do bench-python                            builds package and command before

Two workers each, on this machine, in turns; a turn starts a system, measures, and ends it. Pickled
arguments and results of calls have some 200 bytes. The programs are a grid search of scikit-learn,
a pipeline of images, and a Monte Carlo in NumPy: each with tasks of 10 ms or more (long), and of
about 1 ms or less (short). bench/python has them all.

RESULTS. What has a target: NAME, NAME.low and NAME.high (95 % interval), and NAME.verdict (pass,
fail, or unsure where the target is in the interval). A ratio is Midflight's speed divided by the
other system's.
  python.tasks_per_s          calls by submit in a loop                  target: 30,000
  python.map_tasks_per_s      the same by map                            target: 60,000
  python.rtt_p50_us           one call alone, in µs                      target: at most 200
  python.bytes_per_task       bytes that loopback carries for a call by submit, with headers of
                              IP, UDP and TCP; python.map_bytes_per_task, .alone_bytes_per_task
  python.ray_ratio, .dask_ratio, .joblib_ratio
                              submit ÷ the other's submit                target: 12 (Ray, Dask)
  python.map_ray_ratio, ...   map ÷ the other's way for many calls
  python.rtt_ray_ratio, ...   one call alone
  python.PROGRAM_ray_ratio, ...
                              PROGRAM is grid_long, grid_short, images_... or montecarlo_...
                              target: long 0.952 (5 % behind), short 3 (Ray, Dask) or 1 (joblib)
  python.PROGRAM_ray_task_each_ratio
                              the same of short images and Monte Carlo where Ray has a task for
                              each call; its pool's map cuts the list into a few chunks
  python.PROGRAM_task_ms      a task, in one process without any system
  python.SYSTEM.version, .tasks_per_s, .map_tasks_per_s, .rtt_p50_us, .PROGRAM_s
                              medians of each system (what has an interval is a geometric mean)

It needs Python 3.11 or newer with venv, and the first time a network to install from. A system that
cannot be installed is skipped, with its reason. Nothing is installed outside of --work-dir.

EXIT CODES
  0 measured, 1 a system that was installed failed, or Midflight's package is missing,
  2 wrong usage, 130 interrupted";

/// Timeouts for the installation of a system, and for its turn.
const SETUP_LIMIT: Duration = Duration::from_secs(20 * 60);
const TURN_LIMIT: Duration = Duration::from_secs(5 * 60);
/// Part of the package; cargo puts it next to the command.
const NATIVE: &str = "libmidflight_native.so";
/// All programs in one process.
const SERIAL: &str = "serial";

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
    /// Only these, separated by commas
    #[arg(long, value_enum, value_name = "SYSTEMS", value_delimiter = ',')]
    only: Vec<System>,
    /// Turns of each system; default: 8, with --quick 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    turns: Option<u32>,
    /// The folder with the programs, of Midflight's repository
    #[arg(long, value_name = "DIR", default_value = "./bench/python")]
    scripts_dir: PathBuf,
    /// Where Python's packages are installed, and the logs
    #[arg(long, value_name = "DIR", default_value = "./target/bench-python")]
    work_dir: PathBuf,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum System {
    Midflight,
    Joblib,
    Dask,
    Ray,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let how = &args.how;
    let scripts = Scripts::new(args)?;
    let mut systems = Vec::new();
    let mut absent = Vec::new();
    for system in System::value_variants() {
        if !args.only.is_empty() && !args.only.contains(system) {
            continue;
        }
        match scripts.set_up(*system) {
            _ if scripts.keeper.stopped() => return Ok(ExitCode::from(usage::INTERRUPTED)),
            Ok(()) => systems.push(Measured::new(system.name())),
            Err(error) if *system == System::Midflight => return Err(error),
            Err(error) => absent.push(format!("SKIPPED: {}: {}", system.name(), usage::one_line(&error))),
        }
    }
    absent.iter().for_each(|line| eprintln!("{line}"));
    ensure!(!systems.is_empty(), "none of these systems can be installed");
    let skipped = absent.len();
    let turns = args.turns.unwrap_or(if how.quick { 2 } else { 8 });
    let serial = measure(&scripts, &mut systems, turns, &mut absent);
    if scripts.keeper.stopped() {
        return Ok(ExitCode::from(usage::INTERRUPTED));
    }
    print(how, &serial?, &systems, turns, &absent)?;
    Ok(if absent.len() > skipped { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// First without a system, then all turns. A system that fails is removed from `systems`.
fn measure(scripts: &Scripts<'_>, systems: &mut Vec<Measured>, turns: u32, absent: &mut Vec<String>) -> Result<Turn> {
    eprintln!("{SERIAL}: the programs in one process");
    let serial = scripts.turn(SERIAL)?;
    let (started, all, mut done) = (Instant::now(), turns as usize * systems.len(), 0);
    for number in 1..=turns {
        // Reverse the order, so that drift affects all systems alike.
        systems.reverse();
        let mut kept = Vec::new();
        for mut system in systems.drain(..) {
            eprintln!("turn {number} of {turns}: {}{}", system.name, to_go(started.elapsed(), done, all));
            done += 1;
            let turn = scripts.turn(&system.name).and_then(|turn| turn.same_answers_as(&serial));
            match turn {
                Ok(turn) => system.turns.push(turn),
                Err(error) if system.is_ours() || scripts.keeper.stopped() => return Err(error),
                Err(error) => {
                    let line = format!("FAILED: {}: {}", system.name, usage::one_line(&error));
                    eprintln!("{line}");
                    absent.push(line);
                    continue;
                }
            }
            kept.push(system);
        }
        systems.extend(kept);
    }
    ensure!(!systems.is_empty(), "no system was measured");
    systems.sort_by_key(|system| System::from_str(&system.name, true).map_or(0, |system| system as u8));
    Ok(serial)
}

/// The remaining time, estimated from the turns so far.
fn to_go(elapsed: Duration, done: usize, all: usize) -> String {
    if done < 2 || done >= all {
        return String::new();
    }
    let left = elapsed.mul_f64((all - done) as f64 / done as f64);
    format!(", {} to go", humantime::format_duration(Duration::from_secs(left.as_secs().max(1))))
}

/// Stops what the scripts start.
struct Scripts<'a> {
    args: &'a Args,
    keeper: Keeper,
}

impl<'a> Scripts<'a> {
    fn new(args: &'a Args) -> Result<Self> {
        if !["setup", "run"].iter().all(|script| args.scripts_dir.join(script).is_file()) {
            return Err(usage::error(format!(
                "--scripts-dir {}: no scripts `setup` and `run` there; run this at the root of Midflight's repository, \
                 or say where its bench/python is",
                args.scripts_dir.display()
            )));
        }
        std::fs::create_dir_all(&args.work_dir)
            .with_context(|| format!("cannot create {}: name another --work-dir", args.work_dir.display()))?;
        Ok(Self { args, keeper: Keeper::new()? })
    }

    fn command(&self, script: &str, system: &str) -> Result<Command> {
        let absolute = |path: &Path| path.canonicalize().with_context(|| format!("cannot find {}", path.display()));
        let mut command = Command::new(absolute(&self.args.scripts_dir.join(script))?);
        command.arg(system).arg(absolute(&self.args.work_dir)?);
        Ok(command)
    }

    fn log(&self, script: &str, system: &str) -> PathBuf {
        self.args.work_dir.join(format!("{script}-{system}.log"))
    }

    /// Installs it if necessary.
    fn set_up(&self, system: System) -> Result<()> {
        let (name, ours) = (system.name(), this_program()?);
        let mut command = self.command("setup", &name)?;
        command.arg(ours.with_file_name(NATIVE));
        child::run(&self.keeper, &mut command, &self.log("setup", &name), SETUP_LIMIT).map(drop)
    }

    fn turn(&self, system: &str) -> Result<Turn> {
        let mut command = self.command("run", system)?;
        command.arg("--with-parent").env("MIDFLIGHT", this_program()?).env_remove("MIDFLIGHT_SWITCH");
        if self.args.how.quick {
            command.arg("--quick");
        }
        let said = child::run(&self.keeper, &mut command, &self.log("run", system), TURN_LIMIT)?;
        Turn::parse(system, &said).map_err(|error| anyhow!("`run {system}`: {error:#}"))
    }
}

fn this_program() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find this program")
}

fn print(how: &How, serial: &Turn, systems: &[Measured], turns: u32, absent: &[String]) -> Result<()> {
    let findings = findings::of(systems);
    let envelope = Envelope::new("python", findings::measures(&findings, serial, systems));
    if how.json {
        return envelope.print(true);
    }
    let text = table::render(&findings, serial, systems, absent);
    stdout::print(&format!("{text}\n{}{turns} turns of each, 2 workers\n", envelope.footer()))
}
