//! `midflight up`: a whole cluster on this machine.

mod cache;
mod data;
mod ports;
pub(super) mod slurm;
mod store;

use crate::commands::switch::SwitchProgram;
use crate::counts::{self, Counts};
use crate::embedded::{Embedded, LocalExecutors, ServedUsers};
use crate::options;
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_cache::select::Algorithm;
use midflight_control::config::DEFAULT_PORT;
use midflight_control::store::ReadMode;
use midflight_control::{Config, EngineKind};
use midflight_dataplane::TasksProgram;
use midflight_terminal::machine::cores;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::{stdout, usage};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight up                           a switch on 127.0.0.1:7700, a slot for each core
  midflight up --executors 4 --slots 16
  midflight up --executors 2 --place a,b   one at place a, one at b: see `submit --prefer`
  midflight up --listen 127.0.0.1:0      on a free port
  midflight up --count r0=2              two bundles of a resource: see `midflight executor --help`
  midflight up --python                  runs Python functions, too: docs/python.md
  midflight up --store                   a store: three replicas, a switch; its data ends with it
  midflight up --store --data here       the same; the data stays in a directory
  midflight up --store --reads raft      the same; reads are served in another mode
  midflight up --cache                   a replicated cache: three memcached, their operator

  salloc -N 4 midflight up               executors on all four nodes of a Slurm allocation

The switch is in this process; `midflight switch --engine kernel` has one in the kernel. On loopback
it serves your own processes only. On another address whoever reaches it may run commands as you.

Inside an allocation of Slurm the executors are started by `srun`, --executors of them on each of
its nodes, with a slot for each CPU; the switch is on this machine's own address, not on loopback.
Whoever reaches it there may run commands as you.

Ctrl-C finishes what runs and ends it; a second one ends at once.

EXIT CODES
  0 ended by a signal, 1 failed (port in use) or ended by a second signal, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Executors to start in this process
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    executors: u32,
    /// Slots of each; default: cores of this machine
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    slots: Option<u32>,
    #[command(flatten)]
    counts: Counts,
    /// Places of the executors, in turn: tasks may prefer one (--prefer)
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    place: Vec<String>,
    /// UDP address of the switch; default: 127.0.0.1:7700, or the configuration's
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// TCP address of the page, /metrics, /healthz and /status, or "off"; default: 127.0.0.1:7701, or the configuration's
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    #[command(flatten)]
    outputs: options::OutputFiles,
    #[command(flatten)]
    python: options::Python,
    /// How long tasks may go on after Ctrl-C before they are killed
    #[arg(long, value_name = "DURATION", value_parser = usage::duration, default_value = "1m")]
    drain: Duration,
    /// A store instead of a task queue: three replicas and a switch
    #[arg(long, conflicts_with_all = ["executors", "slots", "drain", "config", "output_disk", "output_dir", "python", "venv", "python_tasks", "python_cache"])]
    store: bool,
    /// Directory in which the store's data stays; default: a temporary one
    #[arg(long, value_name = "DIR", requires = "store")]
    data: Option<PathBuf>,
    /// TCP address for Redis' clients of the store, or "off"; default: 127.0.0.1:6379, or the next free port
    #[arg(long, value_name = "HOST:PORT", requires = "store")]
    redis: Option<String>,
    /// How the store's reads are served: `reads` of the configuration
    #[arg(long, value_name = "MODE", requires = "store", default_value = "flair")]
    reads: ReadMode,
    /// A replicated cache instead of a task queue: three memcached, their agents, an operator and a controller
    #[arg(long, conflicts_with_all = ["executors", "slots", "drain", "config", "store", "output_disk", "output_dir", "python", "venv", "python_tasks", "python_cache"])]
    cache: bool,
    /// How the cache's operator selects, such as c3, least-outstanding or power-of-two
    #[arg(long, value_name = "SELECTOR", requires = "cache", default_value_t)]
    selector: Algorithm,
    /// Other users of this machine may submit too: their commands run as you; or use the store. Without, a switch on loopback
    /// serves you and root
    #[arg(long)]
    any_user: bool,
    /// Inside a Slurm allocation: start the executors in this process all the same
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    file: options::ConfigFile,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.store {
        return store::run(args);
    }
    if args.cache {
        return cache::run(args);
    }
    if !args.local
        && let Some(allocation) = slurm::Allocation::of_environment()?
    {
        return slurm::run(args, &allocation);
    }
    let mut config: Config = args.file.load()?;
    if args.file.config.is_none() {
        config.switch.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
    }
    options::override_addresses(&mut config.switch, args.listen.as_deref(), args.http.as_deref())?;
    if config.switch.engine.kind == EngineKind::Kernel {
        tracing::warn!("`up` has its switch in this process, whatever the configuration says: see `midflight switch`");
    }
    let slots = args.slots.unwrap_or_else(cores);
    let mut shutdown = Shutdown::new()?;
    let served = ServedUsers::at(config.switch.listen, args.any_user);
    args.one_executor_counts()?;
    let counted = args.counts.resources(&args.file)?;
    let counting = counts::summary(&counted);
    let blobs = args.outputs.blobs()?;
    let (executors, python) = (args.executors, args.python.options()?);
    let here = LocalExecutors { executors, slots, counted: &counted, places: &args.place, blobs, python };
    let embedded = Embedded::start(&config, &here, served)?;
    let switch = &embedded.running.switch;
    TasksProgram::begin(TasksProgram::companion(&config, switch.local_addr().port())?, switch, || ())?;
    stdout::print(&greeting(&embedded, args.executors, slots, &counting))?;
    if served == ServedUsers::All {
        eprintln!("whoever reaches this switch may run commands as you");
    }
    shutdown.wait();
    eprintln!("finishing what runs; Ctrl-C again ends at once");
    shutdown.each(|_| std::process::exit(i32::from(midflight_terminal::usage::FAILURE)));
    embedded.executors.iter().for_each(midflight_host::Executor::begin_drain);
    embedded.executors.iter().try_for_each(|executor| executor.drain(args.drain))?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Two executors on one machine would both assign its bundles.
    fn one_executor_counts(&self) -> Result<()> {
        if self.executors > 1 && !self.counts.is_empty() {
            return Err(usage::error("--count is of one executor: leave --executors at 1, and give that --slots"));
        }
        Ok(())
    }
}

fn greeting(embedded: &Embedded, executors: u32, slots: u32, counting: &str) -> String {
    let switch = embedded.address();
    let of_switch = if switch.port() == DEFAULT_PORT { String::new() } else { format!(" --switch {switch}") };
    let executors = if executors == 1 { "an executor".into() } else { format!("{executors} executors, each") };
    let status = embedded.running.http().map_or_else(String::new, |http| {
        format!(
            "  midflight status --http {http}\n  midflight top --http {http}\n\nThe page http://{http}/ shows what it does.\n"
        )
    });
    format!(
        "switch on {switch}, {executors} with {slots} slots{counting}. In another terminal:\n\n  \
         midflight submit noop -n 100000{of_switch}\n  \
         seq 20 | midflight map --switch {switch} -- 'sleep 0.5; echo done:'\n{status}\nCtrl-C ends it.\n"
    )
}
