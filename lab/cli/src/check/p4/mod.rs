//! `midflight-lab check p4`: runs the P4 programs in BMv2 against the model and with clients and executors; compiles them for Tofino.

mod e2e;
mod tofino;

use crate::lab_guard::LabGuard;
use anyhow::{Context, Result};
use clap::{Args as ClapArgs, ValueEnum};
use midflight_p4::differential::{Compared, random, transcripts};
use midflight_p4::tofino::{Target, TofinoTools};
use midflight_p4::tools::Bmv2Tools;
use midflight_p4::{P4Error, Program};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::{stdout, usage};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab check p4                             minutes; as root
  midflight-lab check p4 --packets 1000 --seed 7     less of it, other packets
  P4C=~/p4c/build BMV2=~/bmv2/bin midflight-lab check p4 --json | jq .results
  midflight-lab check p4 --only tofino --report p4/reports

Compiles each program for v1model, runs it in BMv2, and gives the same packets to it and to the
model of a switch that `midflight-lab check asic` searches: packets that come out and registers must
be equal. Then our client and executors run tasks of all levels and requirements through
it in a lab (`midflight-lab pipeline --engine bmv2`), and the switch is killed midway. It needs
p4c-bm2-ss and simple_switch, in PATH or where P4C and BMV2 say, and the right to make a network
namespace. At last each program is compiled and assembled for Tofino 1 and 2, where p4c-barefoot
and bfas are, in PATH or where P4C_TOFINO and BFAS say; TNA_INCLUDE is the folder of tna.p4, if the
compiler is not installed. What is missing is named, and its part left out.
docs/internals/p4.md explains the programs and the test.

RESULTS, of each PROGRAM
  p4.PROGRAM.bmv2.transcripts      transcripts whose packets both got
  p4.PROGRAM.bmv2.random_packets   packets from outside, of all kinds
  p4.PROGRAM.bmv2.passes           passes through the pipeline, recirculated packets included
  p4.PROGRAM.bmv2.differences      differences between switch and model
  p4.PROGRAM.tna.stages            stages of Tofino 1 that hold something, of 12
  p4.PROGRAM.tna.entries_per_level entries of each of the four levels
  p4.PROGRAM.tna.sram_percent, .tcam_percent, .phv_percent
                                   of what the switch has: memory blocks, bits of containers
  p4.PROGRAM.t2na.…                the same of Tofino 2, which has 20 stages
  p4.e2e.PROGRAM.tasks             tasks whose callers heard their results
  p4.e2e.PROGRAM.lost              tasks that the switch accepted, never assigned, and did not drop
  p4.e2e.PROGRAM.lost.hazard_N     those that hazard N explains (docs/internals/asic-hazards.md)
  p4.e2e.PROGRAM.wrong             tasks that ended otherwise than with a result
  p4.e2e.PROGRAM.timed_out, .resubmitted
                                   tasks submitted again: after a time-out; after the kill
  p4.e2e.PROGRAM.kill_named_ms     until `midflight switch` said that its switch was killed
  p4.e2e.PROGRAM.seconds           the whole

EXIT CODES
  0 no differences, nothing lost by the safe program, and all that the published one lost explained;
  1 otherwise, or a program could not be compiled or run; 2 wrong usage; 3 tools or a right are
  missing, so that nothing was done";

/// Path of the transcripts in a clone of the repository.
const TRANSCRIPTS: &str = "transcripts/tasks";
/// Nothing was done.
const SKIPPED: u8 = 3;

/// What there is to do.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The comparison with the model
    Compare,
    /// Tasks in a lab
    Tasks,
    /// The compilation for Tofino
    Tofino,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Compare => "the comparison with the model",
            Self::Tasks => "tasks through BMv2",
            Self::Tofino => "the compilation for Tofino",
        }
    }
}

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
    /// Tasks for each program in the lab
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    tasks: u32,
    /// Only this part
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// Write what the compiler for Tofino says of each program into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    for (option, folder) in [("--transcripts", &args.transcripts), ("--report", &args.report)] {
        if let Some(folder) = folder.as_deref().filter(|folder| !folder.is_dir()) {
            return Err(usage::error(format!("{option} {} is no directory", folder.display())));
        }
    }
    let guard = LabGuard::new()?;
    let scratch = midflight_terminal::files::temporary("midflight-p4-")?;
    guard.remove_too(scratch.path());
    let here = Here { args, guard: &guard, scratch: scratch.path() };
    let mut measures = Vec::new();
    let (mut is_right, mut done) = (true, false);
    for part in [Part::Compare, Part::Tasks, Part::Tofino] {
        if args.only.is_some_and(|only| only != part) {
            continue;
        }
        let outcome = match part {
            Part::Compare => here.compare(&mut measures),
            Part::Tasks => here.run_tasks(&mut measures),
            Part::Tofino => here.compile(&mut measures),
        };
        let outcome = guard.unless_interrupted(outcome);
        match outcome {
            Ok(this) => (is_right, done) = (is_right && this, true),
            // No failure: a tool or privilege is missing.
            Err(error) if error.downcast_ref().is_some_and(P4Error::is_for_want_of_something) => {
                eprintln!("SKIPPED: check p4: {}: {error}", part.name());
            }
            Err(error) => return Err(error),
        }
    }
    if !done {
        return Ok(ExitCode::from(SKIPPED));
    }
    if args.json {
        Envelope::new("check p4", measures).print(true)?;
    } else {
        stdout::print(&format!("\n{}", Envelope::new("check p4", Vec::new()).footer()))?;
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Here<'a> {
    args: &'a Args,
    guard: &'a LabGuard,
    /// Removed when the command ends.
    scratch: &'a Path,
}

impl Here<'_> {
    /// Compares each program with the model. Returns whether none differed.
    fn compare(&self, measures: &mut Vec<Measure>) -> Result<bool> {
        let tools = Bmv2Tools { scratch: self.scratch.into(), ..Bmv2Tools::find()? };
        let files = read_transcripts(self.args.transcripts.as_deref())?;
        let mut is_right = true;
        for program in Program::ALL {
            is_right &= self.compare_one(&tools, program, &files, measures)?;
        }
        Ok(is_right)
    }

    /// Compiles each program for each Tofino that the compiler knows. A program that does not fit is an error of the tools.
    fn compile(&self, measures: &mut Vec<Measure>) -> Result<bool> {
        let tools = TofinoTools { scratch: self.scratch.into(), ..TofinoTools::find()? };
        let (mut compiled, mut unknown) = (false, None);
        for (target, program) in
            Target::ALL.into_iter().flat_map(|target| Program::ALL.map(|program| (target, program)))
        {
            let report = match tofino::run(&tools, program, target, self.args.report.as_deref()) {
                Err(error) if error.downcast_ref().is_some_and(P4Error::is_for_want_of_something) => {
                    eprintln!("SKIPPED: check p4: {} for {}: {error}", program.name(), target.name);
                    unknown = Some(error);
                    continue;
                }
                report => report?,
            };
            if !self.args.json {
                stdout::print(&tofino::told(&report, target))?;
            }
            measures.extend(tofino::measures(&report, target));
            compiled = true;
        }
        match unknown {
            Some(error) if !compiled => Err(error),
            _ => Ok(true),
        }
    }

    /// One program and the model. Returns whether they agreed.
    fn compare_one(
        &self,
        tools: &Bmv2Tools,
        program: Program,
        files: &[(String, String)],
        measures: &mut Vec<Measure>,
    ) -> Result<bool> {
        let written = transcripts(tools, program, files)?;
        let drawn = random(tools, program, self.args.packets, self.args.seed)?;
        let (mut is_right, program) = (true, program.name());
        for (what, compared) in [("transcripts", &written), ("random", &drawn)] {
            is_right &= compared.differences.is_empty();
            compared.differences.iter().for_each(|difference| eprintln!("{program}: {difference}"));
            if !self.args.json {
                stdout::print(&told(program, what, compared))?;
            }
        }
        measures.extend(measured(program, files.len(), &written, &drawn));
        Ok(is_right)
    }

    /// Returns whether all went well.
    fn run_tasks(&self, measures: &mut Vec<Measure>) -> Result<bool> {
        Bmv2Tools::find()?;
        midflight_net::available().map_err(P4Error::from)?;
        let mut is_right = true;
        for program in Program::ALL {
            let outcome = e2e::run(program, self.args.tasks, self.guard)?;
            is_right &= outcome.is_right();
            if !self.args.json {
                stdout::print(&outcome.told())?;
            }
            measures.extend(outcome.measures());
        }
        Ok(is_right)
    }
}

/// Path and text of each transcript, sorted by path; none if the default folder is missing.
fn read_transcripts(named: Option<&Path>) -> Result<Vec<(String, String)>> {
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
        let text = midflight_files::read_text(&path, 16 * midflight_files::MIB)
            .with_context(|| format!("cannot read {}", path.display()))?;
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
