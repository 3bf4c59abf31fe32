//! The `midflight-lab` command: measures and checks Midflight. It includes `midflight`, because it runs switches, executors and replicas as
//! processes of its own.
//!
//! | module | subject |
//! |---|---|
//! | [`mod@bench`] | benchmarks |
//! | [`sim`] | the simulator: figures, sweeps, scenarios, the fault campaign |
//! | [`check`] | every state of small instances; histories of a store |
//! | [`net`] | hosts and a switch in network namespaces |
//! | [`soak`], [`attack`] | a cluster in a lab, under load and disturbances, and under attack |
//! | [`store`], [`cache`] | a load on each, and faults of a store |
//! | [`pipeline`] | a switch in the model of a pipeline, or in BMv2 |
//! | [`baseline`] | schedulers for comparison |
//! | [`report`] | results as pages |

#[macro_use(eprintln)]
extern crate midflight_terminal;

mod attack;
mod baseline;
mod bench;
mod cache;
mod cells;
mod check;
mod engines;
mod lab_guard;
mod load;
mod median;
mod memory;
mod net;
mod pipeline;
mod processes;
mod report;
mod sim;
mod soak;
mod store;

use clap::{Parser, Subcommand};
use midflight_cli::shell::{self, CommandLine};
use midflight_net::LabError;
use midflight_terminal::usage;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
EXAMPLES
  midflight-lab bench loop                 what a task costs on this machine
  midflight-lab sim figure falcon-8        a figure of the papers, simulated
  midflight-lab sim check tasks            the fault campaign
  sudo midflight-lab net up --hosts 4      hosts in network namespaces

The subcommands of `midflight` are here, too (`midflight-lab switch`): the processes that the
laboratory starts are its own.

EXIT CODES
  0 done; 1 failed, or a check found something; 2 wrong usage; 130 interrupted";

#[derive(Parser)]
#[command(
    name = "midflight-lab",
    version,
    about = "The laboratory of Midflight: measures it, checks it, and reproduces the papers",
    after_help = AFTER_HELP,
    propagate_version = true
)]
struct Cli {
    /// How much to log to stderr, for example "info" or "midflight_host=debug,warn"
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum Command {
    /// Run benchmarks on this machine
    Bench(bench::Args),
    /// Simulations: the papers' figures, sweeps, fault campaigns
    Sim(sim::Args),
    /// Check that Midflight is correct: models of its programs, the P4 programs, a store's history
    Check(check::Args),
    /// Hosts and a switch on this machine, in network namespaces: to try, test and measure in
    Net(net::Args),
    /// Load a cluster in a lab that loses packets, stop and kill its parts, and check that no task was lost
    Soak(soak::command::Args),
    /// Attack a cluster in a lab with everything that a host off its path can forge, and check that it does no harm
    Attack(attack::command::Args),
    /// Let replicas, switches and links of a store in a lab fail, and check that what its clients saw is linearizable
    Faults(store::faults::command::Args),
    /// Load a store or a cache that runs, and measure
    Load(load::Args),
    /// Start a switch whose program runs in the model of a switch's pipeline, or in BMv2
    Pipeline(pipeline::Args),
    /// Schedulers to compare Midflight with, over real sockets: Sparrow
    Baseline(baseline::Args),
    #[command(flatten)]
    Product(midflight_cli::Command),
}

impl CommandLine for Cli {
    fn log(&self) -> Option<&str> {
        self.log.as_deref()
    }

    /// A cluster under attack would fill the log.
    fn default_log(&self) -> &'static str {
        match &self.command {
            Command::Product(command) => command.default_log(),
            Command::Pipeline(_) | Command::Baseline(_) => "warn",
            Command::Attack(_) => "off",
            _ => "error",
        }
    }

    fn ends_with_its_reader(&self) -> bool {
        match &self.command {
            Command::Product(command) => command.ends_with_its_reader(),
            Command::Bench(args) => args.ends_with_its_reader(),
            Command::Net(args) => args.ends_with_its_reader(),
            _ => false,
        }
    }

    fn run(self) -> anyhow::Result<ExitCode> {
        let ended = run(self.command);
        if let Err(error) = &ended
            && let Some(LabError::Interrupted(_)) = error.downcast_ref()
        {
            eprintln!("{error}");
            return Ok(ExitCode::from(usage::INTERRUPTED));
        }
        ended
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Bench(args) => bench::run(args),
        Command::Sim(args) => sim::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Net(args) => net::run(&args),
        Command::Soak(args) => soak::command::run(&args),
        Command::Attack(args) => attack::command::run(&args),
        Command::Faults(args) => store::faults::command::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Pipeline(args) => pipeline::run(&args),
        Command::Baseline(args) => baseline::run(&args),
        Command::Product(command) => midflight_cli::run(command),
    }
}

fn main() -> ExitCode {
    shell::main::<Cli>()
}
