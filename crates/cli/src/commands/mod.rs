//! The subcommands. Each file has its arguments (`Args`) and `run`, which returns the exit code.

mod agent;
mod cache;
mod completions;
pub(crate) mod controller;
mod executor;
mod job;
mod man;
pub(crate) mod map;
mod plan;
mod purge;
mod replica;
mod status;
mod store;
pub(crate) mod submit;
mod submitter;
pub(crate) mod switch;
mod top;
mod up;

use crate::replay;
use clap::Subcommand;
use std::process::ExitCode;

/// What `midflight` does.
#[derive(Subcommand)]
#[allow(private_interfaces, reason = "clap makes it, and only `run` looks inside")]
pub enum Command {
    /// Start a switch and executors on this machine, and say what to type next
    Up(up::Args),
    /// Start a switch
    Switch(switch::Args),
    /// Start an executor: slots that pull tasks from a switch and run them
    Executor(executor::Args),
    /// Start the controller of a network of operators, or ask it
    Controller(controller::Args),
    /// Start a replica of a store
    Replica(replica::Args),
    /// Start an agent before memcached or Redis: it serves reads that the network has routed
    Agent(agent::Args),
    /// Read and write a store: linearizable, by every replica
    #[command(alias = "kv")]
    Store(store::Args),
    /// Read and write a replicated cache
    Cache(cache::Args),
    /// Call a function many times
    Submit(submit::Args),
    /// Run command lines in parallel; their output comes in the order of the input
    Map(map::Args),
    /// List, show, wait for and cancel jobs that outlive their terminal, and print their outputs
    Job(job::Args),
    /// Replay a trace (or a generated workload) and measure the scheduling delay
    Replay(replay::command::Args),
    /// Keep jobs and have their commands run: starts by itself, or in the foreground for systemd
    Submitter(submitter::Args),
    /// Show what a switch is doing
    Status(status::Args),
    /// Watch a switch while it works: executors, jobs, rates, waits, failures
    Top(top::Args),
    /// Remove queued tasks from a switch on this machine
    Purge(purge::Args),
    /// Plan where replicas are selected: operators for traffic groups, as few as possible
    Plan(plan::Args),
    /// Print completions for a shell
    Completions(completions::Args),
    /// Write the manual pages
    Man(man::Args),
}

impl Command {
    /// The default log filter: services warn, for example about small kernel buffers; for jobs the output matters.
    #[must_use]
    pub fn default_log(&self) -> &'static str {
        match self {
            Self::Up(_)
            | Self::Switch(_)
            | Self::Controller(_)
            | Self::Executor(_)
            | Self::Replica(_)
            | Self::Agent(_)
            | Self::Submitter(_) => "warn",
            _ => "error",
        }
    }

    /// Whether a closed pipe (`| head`) ends the process at once. Commands with children end those first.
    #[must_use]
    pub fn ends_with_its_reader(&self) -> bool {
        matches!(
            self,
            Self::Status(_)
                | Self::Submit(_)
                | Self::Job(_)
                | Self::Replay(_)
                | Self::Plan(_)
                | Self::Store(_)
                | Self::Cache(_)
        )
    }
}

/// Runs a subcommand and returns the exit code.
///
/// # Errors
/// For wrong usage, or with the reason of the failure.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => up::run(&args),
        Command::Switch(args) => switch::run(&args),
        Command::Executor(args) => executor::run(&args),
        Command::Controller(args) => controller::run(&args),
        Command::Replica(args) => replica::run(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Submit(args) => submit::run(&args),
        Command::Map(args) => map::run(args),
        Command::Job(args) => job::run(&args),
        Command::Submitter(args) => submitter::run(&args),
        Command::Replay(args) => replay::command::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Purge(args) => purge::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
