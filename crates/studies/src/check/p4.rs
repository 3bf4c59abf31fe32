//! `midflight check p4`: the P4 programs in BMv2, beside the model.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_p4::differential::{Compared, random, transcripts};
use midflight_p4::tools::Bmv2Tools;
use midflight_p4::{P4Error, Program};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::{stdout, usage};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight check p4                             minutes; as root
  midflight check p4 --packets 1000 --seed 7     less of it, other packets
  P4C=~/p4c/build BMV2=~/bmv2/bin midflight check p4 --json | jq .results

Compiles each program for v1model, runs it in BMv2, and gives the same packets to it and to the
model of a switch, in which the program was searched. What comes out must be the same, and what
is in the registers. It needs p4c-bm2-ss and simple_switch, in PATH or where P4C and BMV2 say, and
the right to make a network namespace. docs/internals/p4.md explains the programs and the test.

RESULTS, of each PROGRAM
  p4.PROGRAM.bmv2.transcripts      transcripts whose packets both were given
  p4.PROGRAM.bmv2.random_packets   packets from outside, of all kinds
  p4.PROGRAM.bmv2.passes           passes, with those of packets that went round
  p4.PROGRAM.bmv2.differences      differences between switch and model

EXIT CODES
  0 no differences; 1 differences, or a program could not be compiled or run; 2 wrong usage; 3 a
  tool or a right is missing: nothing was compared";

/// Where a clone of the repository has them.
const TRANSCRIPTS: &str = "transcripts/tasks";
/// Nothing was compared.
const SKIPPED: u8 = 3;

#[derive(ClapArgs)]
pub(super) struct Args {
    /// Random packets for each program
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    packets: u32,
    /// Which packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The folder of transcripts of tasks; default: transcripts/tasks, if it is there
    #[arg(long, value_name = "DIR")]
    transcripts: Option<PathBuf>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    match compare(args) {
        // What was not compared for want of a tool or of a right is no failure.
        Err(error) if error.downcast_ref().is_some_and(P4Error::is_for_want_of_something) => {
            eprintln!("SKIPPED: check p4: {error}");
            Ok(ExitCode::from(SKIPPED))
        }
        compared => compared,
    }
}

fn compare(args: &Args) -> Result<ExitCode> {
    if let Some(folder) = args.transcripts.as_deref().filter(|folder| !folder.is_dir()) {
        let error = format!("--transcripts {} is no directory: name a folder of transcripts", folder.display());
        return Err(usage::error(error));
    }
    let tools = Bmv2Tools::find()?;
    let files = files(args.transcripts.as_deref())?;
    let mut measures = Vec::new();
    let mut is_right = true;
    for program in Program::ALL {
        let written = transcripts(&tools, program, &files)?;
        let drawn = random(&tools, program, args.packets, args.seed)?;
        let program = program.name();
        for (what, compared) in [("transcripts", &written), ("random", &drawn)] {
            is_right &= compared.differences.is_empty();
            compared.differences.iter().for_each(|difference| eprintln!("{program}: {difference}"));
            if !args.json {
                stdout::print(&told(program, what, compared))?;
            }
        }
        measures.extend(measured(program, files.len(), &written, &drawn));
    }
    if args.json {
        Envelope::new("check p4", measures).print(true)?;
    } else {
        stdout::print(&format!("\n{}", Envelope::new("check p4", Vec::new()).footer()))?;
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Names and texts of the transcripts, in the order of their names.
fn files(named: Option<&Path>) -> Result<Vec<(String, String)>> {
    let folder = named.unwrap_or(Path::new(TRANSCRIPTS));
    if named.is_none() && !folder.is_dir() {
        eprintln!("SKIPPED: there are no transcripts in {TRANSCRIPTS}; --transcripts names their folder");
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok((path.display().to_string(), text))
    };
    paths.into_iter().map(read).collect()
}

fn told(program: &str, what: &str, compared: &Compared) -> String {
    let Compared { packets, passes, left_out, registers, seen, differences } = compared;
    let seen: Vec<_> = seen.iter().map(|(kind, times)| format!("{times} {kind}")).collect();
    format!(
        "{program}, {what}: {packets} packets in {passes} passes ({left_out} left out), registers {registers} times: {} differences\n  {}\n",
        differences.len(),
        seen.join(", ")
    )
}

fn measured(program: &str, files: usize, written: &Compared, drawn: &Compared) -> [Measure; 4] {
    let named = |name: &str| format!("p4.{program}.bmv2.{name}");
    let differences = written.differences.len() + drawn.differences.len();
    [
        Measure::count(&named("transcripts"), files as u64, "transcripts"),
        Measure::count(&named("random_packets"), drawn.packets.into(), "packets"),
        Measure::count(&named("passes"), (written.passes + drawn.passes).into(), "passes"),
        Measure::count(&named("differences"), differences as u64, "differences"),
    ]
}
