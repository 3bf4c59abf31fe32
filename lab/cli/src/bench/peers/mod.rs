//! `midflight-lab bench peers`: the same no-op tasks on other systems and on Midflight, one after the other on this machine.
//!
//! Scripts in `bench/peers` prepare (`setup`) and measure (`run`) the other systems. This file calls them, stops every process that they
//! leave behind, and makes a table of their rows. A system that fails is reported, and the others continue. docs/peers.md has more.

mod ours;
mod row;
mod table;

use super::keeper::Keeper;
use super::{How, child};
use crate::engines::Named;
use anyhow::{Context, Result};
use clap::{Args as ClapArgs, ValueEnum};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::{stdout, usage};
use row::Row;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use table::{Absent, Ratios};

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench peers                         all; the first time also downloads and builds them
  midflight-lab bench peers --quick --only dask,midflight-user
  midflight-lab bench peers --json

RESULTS (NAME is midflight-user, midflight-kernel, sparrow, nats, nats-jetstream: batches of
no-op tasks inside a process; midflight-python, ray, ray-actors, ray-compiled, dask: calls of a
Python function; midflight-exec, hyperqueue: programs)
  peers.NAME.version
  peers.NAME.tasks_per_s       no-op tasks, submitted as fast as the interface takes them
  peers.NAME.rtt_p50_us, peers.NAME.rtt_p99_us
                               one no-op task at a time
  peers.NAME.throughput_ratio  Midflight's throughput by the peer's, for tasks of the same kind
  peers.NAME.latency_ratio     the peer's median latency by Midflight's; the unit says by which
                               row: of batches the kernel engine's, or user space without it

midflight-python needs the native part of the package beside the command: ./do bench-python, or
cargo build --release -p midflight-python. The peers need python3 with venv, Go and a network to
install from; what cannot be installed or is not permitted (the kernel engine needs root) is
skipped, with its reason. Nothing is installed outside of --work-dir.

EXIT CODES
  0 measured, 1 a peer that was installed failed, or nothing was measured, 2 wrong usage,
  130 interrupted";

/// Timeouts for the download and build of a system, and for its measurement.
const SETUP_LIMIT: Duration = Duration::from_secs(20 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(10 * 60);

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
    /// Only these, separated by commas
    #[arg(long, value_enum, value_name = "PEERS", value_delimiter = ',')]
    only: Vec<Peer>,
    /// All but these
    #[arg(long, value_enum, value_name = "PEERS", value_delimiter = ',', conflicts_with = "only")]
    skip: Vec<Peer>,
    /// The folder with the peers' scripts, of Midflight's repository
    #[arg(long, value_name = "DIR", default_value = "./bench/peers")]
    peers_dir: PathBuf,
    /// Where the peers are installed, and their logs
    #[arg(long, value_name = "DIR", default_value = "./target/peers")]
    work_dir: PathBuf,
}

/// Part of the Python package; cargo puts it next to the command.
const NATIVE: &str = "libmidflight_native.so";

/// What can be measured. A peer may have several rows.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Peer {
    MidflightUser,
    MidflightKernel,
    MidflightPython,
    MidflightExec,
    Sparrow,
    Ray,
    Dask,
    Hyperqueue,
    Nats,
}

impl Peer {
    /// Whether scripts in `bench/peers` prepare and measure it.
    fn has_scripts(self) -> bool {
        matches!(self, Self::MidflightPython | Self::Ray | Self::Dask | Self::Hyperqueue | Self::Nats)
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let wanted = wanted(args)?;
    let keeper = Keeper::new()?;
    let mut rows = Vec::new();
    let mut absent = Vec::new();
    for peer in wanted {
        match measure(args, &keeper, peer) {
            _ if keeper.stopped() => return Ok(ExitCode::from(usage::INTERRUPTED)),
            Ok(found) => rows.extend(found),
            Err(without) => {
                eprintln!("{}", without.line());
                absent.push(without);
            }
        }
    }
    rows.sort_by(|a: &Row, b| a.kind().cmp(&b.kind()).then(b.tasks_per_s.total_cmp(&a.tasks_per_s)));
    print(args, &rows, &absent)?;
    let failed = rows.is_empty() || absent.iter().any(|absent| absent.failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Fails if none is left, or the scripts are missing.
fn wanted(args: &Args) -> Result<Vec<Peer>> {
    let asked = |peer: &Peer| (args.only.is_empty() || args.only.contains(peer)) && !args.skip.contains(peer);
    let wanted: Vec<Peer> = Peer::value_variants().iter().copied().filter(asked).collect();
    if wanted.is_empty() {
        return Err(usage::error("--skip leaves nothing to measure"));
    }
    if wanted.iter().any(|peer| peer.has_scripts())
        && !["setup", "run"].iter().all(|s| args.peers_dir.join(s).is_file())
    {
        let directory = args.peers_dir.display();
        return Err(usage::error(format!(
            "--peers-dir {directory}: no scripts `setup` and `run` there; run this at the root of Midflight's repository, \
             or say where its bench/peers is"
        )));
    }
    std::fs::create_dir_all(&args.work_dir)
        .with_context(|| format!("cannot create {}: name another --work-dir", args.work_dir.display()))?;
    Ok(wanted)
}

/// The rows of a system, or why there are none.
fn measure(args: &Args, keeper: &Keeper, peer: Peer) -> Result<Vec<Row>, Absent> {
    let absent = |failed: bool| {
        move |error: anyhow::Error| Absent {
            name: peer.name(),
            failed,
            reason: midflight_terminal::usage::one_line(&error),
        }
    };
    if peer.has_scripts() {
        let mut setup = script(args, "setup", peer).map_err(absent(false))?;
        child::run(keeper, &mut setup, &log(args, peer, "setup"), SETUP_LIMIT).map_err(absent(false))?;
    }
    eprintln!("{}: measuring", peer.name());
    // The kernel engine needs rights and a suitable kernel. Without it another row is the reference.
    let found = measure_installed(args, keeper, peer).map_err(absent(peer != Peer::MidflightKernel))?;
    for row in &found {
        eprintln!("{}", row.summary());
    }
    Ok(found)
}

fn measure_installed(args: &Args, keeper: &Keeper, peer: Peer) -> Result<Vec<Row>> {
    let ours = |bench: &[&str]| {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.arg("bench").args(bench).arg("--json");
        Ok(command)
    };
    let mut command = match peer {
        Peer::MidflightExec => return Ok(vec![ours::exec(&peer.name(), args.how.quick)?]),
        Peer::Sparrow => return Ok(vec![ours::sparrow(&peer.name(), args.how.quick)?]),
        Peer::MidflightUser => ours(&["loop"]),
        Peer::MidflightKernel => ours(&["lab", "--engine", "kernel"]),
        _ => script(args, "run", peer).map(|mut command| {
            command.arg("--with-parent");
            command
        }),
    }?;
    if args.how.quick {
        command.arg("--quick");
    }
    let said = child::run(keeper, &mut command, &log(args, peer, "run"), RUN_LIMIT)?;
    match peer {
        Peer::MidflightUser => row::of_envelope(&peer.name(), "loop", USER_INTERFACE, &said).map(|row| vec![row]),
        Peer::MidflightKernel => {
            row::of_envelope(&peer.name(), "lab.kernel", KERNEL_INTERFACE, &said).map(|row| vec![row])
        }
        _ => row::of_lines(&peer.name(), &said),
    }
}

const USER_INTERFACE: &str = "jobs of 2,048 tasks, 4 in flight; latency: a job of one task; client, switch and 1 executor \
                              process with 64 slots on loopback";
const KERNEL_INTERFACE: &str = "jobs of 2,048 tasks, 4 in flight; latency: a job of one task; client, switch in the \
                                kernel and 1 executor process with 64 slots in network namespaces joined by veth";

/// Both scripts take the system and the working directory.
fn script(args: &Args, name: &str, peer: Peer) -> Result<Command> {
    let path = args.peers_dir.join(name);
    let absolute = |path: &Path| path.canonicalize().with_context(|| format!("cannot find {}", path.display()));
    let mut command = Command::new(absolute(&path)?);
    command.arg(peer.name()).arg(absolute(&args.work_dir)?);
    // midflight-python measures this command and the package of the same build.
    let program = std::env::current_exe().context("cannot find this program")?;
    command.env("MIDFLIGHT_NATIVE", program.with_file_name(NATIVE)).env("MIDFLIGHT", program);
    Ok(command)
}

fn log(args: &Args, peer: Peer, step: &str) -> PathBuf {
    args.work_dir.join(format!("{step}-{}.log", peer.name()))
}

fn print(args: &Args, rows: &[Row], absent: &[Absent]) -> Result<()> {
    let envelope = Envelope::new("peers", measures(rows));
    if args.how.json {
        envelope.print(true)?;
    } else {
        stdout::print(&format!("{}\n{}", table::render(rows, absent), envelope.footer()))?;
    }
    Ok(())
}

fn measures(rows: &[Row]) -> Vec<Measure> {
    let mut measures = Vec::new();
    for row in rows {
        let name = |what| format!("peers.{}.{what}", row.name);
        measures.push(Measure::text(&name("version"), &row.version));
        measures.push(Measure::count(&name("tasks_per_s"), row.tasks_per_s.round() as u64, "tasks/s"));
        measures.push(Measure::quantity(&name("rtt_p50_us"), row.rtt_p50_us, "us"));
        measures.push(Measure::quantity(&name("rtt_p99_us"), row.rtt_p99_us, "us"));
        if let Some(Ratios { ours, throughput, latency }) = Ratios::of(row, rows) {
            let ratio = |what, value| Measure {
                unit: format!("x ({ours})").into(),
                ..Measure::quantity(&name(what), value, "")
            };
            measures.extend([ratio("throughput_ratio", throughput), ratio("latency_ratio", latency)]);
        }
    }
    measures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_results_of_peers_and_say_against_what() {
        let rows = [Row::sample("midflight-python", 300_000.0, 60.0), Row::sample("ray", 1_500.0, 1_200.0)];
        let measures = measures(&rows);
        let of = |name: &str| measures.iter().find(|measure| measure.name == name);
        assert_eq!(of("peers.ray.throughput_ratio").unwrap().value, 200.0);
        assert_eq!(of("peers.ray.latency_ratio").unwrap().value, 20.0);
        assert_eq!(of("peers.ray.latency_ratio").unwrap().unit, "x (midflight-python)");
        assert_eq!(of("peers.ray.tasks_per_s").unwrap().value, 1_500);
        assert_eq!(of("peers.ray.version").unwrap().value, "1.0");
        assert_eq!(of("peers.midflight-python.throughput_ratio"), None);
    }
}
