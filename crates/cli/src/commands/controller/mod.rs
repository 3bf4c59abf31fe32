//! `midflight controller`: the controller of a network of operators.

mod operator;
mod status;

use crate::http::{self, Http};
use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, Subcommand};
use midflight_cache::control::Network;
use midflight_control::ShellCounters;
use midflight_control::cache::controller_file::EXAMPLE_TOML;
use midflight_control::cache::{ControllerFile, ControllerPlace, ControllerSnapshot};
use midflight_control::file;
use midflight_control::http::Source;
use midflight_control::metrics::AnySnapshot;
use midflight_control::watch::{ControllerDetail, Looking, Observer};
use midflight_host::cache::control_stream::Secret;
use midflight_host::cache::controller::{ControllerOptions, ControllerProcess};
use midflight_placement::Options;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::{stdout, usage};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight controller --print-config > controller.toml     a small network, explained
  midflight controller --init controller.secret             what it shares with its operators
  midflight controller --config controller.toml             the first of `controllers`
  midflight controller --config controller.toml --place 1   its standby
  midflight controller operator tor-0 --config controller.toml > tor-0.toml    for midflight switch
  midflight controller status --http 10.0.0.250:7790        what it knows; --json for scripts

It plans which operators select replicas, gives them their rules, and moves what a failed one has
served. All controllers read the same file; one is active, the others take over. They write no
file: what is in force they learn from the operators. Copy the secret to the machine of each
controller and operator, readable by its user only. docs/cache.md goes through a small network.

SIGINT and SIGTERM end it. What is in force stays in force.

EXIT CODES
  0 ended by a signal, 1 failed (port in use, a thread panicked), 2 wrong usage or configuration";

const EXAMPLE: &str = "`midflight controller --print-config` prints a file to start from";

const NO_SECRET: &str = "secret: name the file of the secret that controllers and operators share; `midflight controller --init FILE` makes one";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    run: Run,
}

#[derive(Subcommand)]
enum What {
    /// Show what a controller knows: its role, operators, RSNodes, the plan
    Status(status::Args),
    /// Print the configuration of an operator's switch, which fits the controller's
    Operator(operator::Args),
}

#[derive(ClapArgs)]
struct Run {
    /// Configuration: controllers, topology, addresses, times
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Which of `controllers` this is, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    place: u32,
    /// TCP address of its page, /metrics, /healthz and /status, or "off"; default: as `controllers` says
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Print a commented configuration and end
    #[arg(long)]
    print_config: bool,
    /// Write a new secret of controllers and operators to a file, which must not exist, and end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "print_config"])]
    init: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        Some(What::Status(args)) => args.run(),
        Some(What::Operator(args)) => args.run(),
        None => args.run.run(),
    }
}

/// A topology in a file of its own is named relative to the configuration's directory.
fn load(path: &Path) -> Result<ControllerFile> {
    let text = file::read(path, EXAMPLE).map_err(usage::error)?;
    let read = |named: &Path| file::read(&relative_to(path, named), "`midflight plan --generate` prints one");
    ControllerFile::parse(&text, path, read).map_err(usage::error)
}

/// Resolves a path relative to the directory of the file that names it.
fn relative_to(file: &Path, named: &Path) -> PathBuf {
    file.parent().map_or_else(|| named.to_owned(), |directory| directory.join(named))
}

impl Run {
    fn run(&self) -> Result<ExitCode> {
        if self.print_config {
            stdout::print(EXAMPLE_TOML)?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(secret) = &self.init {
            let written = Secret::new(rand::random()).write(secret);
            written.with_context(|| format!("cannot write a secret to {}", secret.display()))?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some(path) = &self.config else {
            return Err(usage::error(format!("a controller needs its network: --config FILE; {EXAMPLE}")));
        };
        let mut file = load(path)?;
        let Some(secret) = &file.secret else {
            return Err(usage::error(format!("{}: {NO_SECRET}", path.display())));
        };
        let secret = Secret::read(&relative_to(path, secret)).map_err(|why| usage::error(format!("secret: {why}")))?;
        let Some(own) = file.controllers.get(self.place as usize).copied() else {
            let count = file.controllers.len();
            return Err(usage::error(format!(
                "--place {}: the configuration has {count} controllers, from 0",
                self.place
            )));
        };
        file.config.place = self.place;
        let http = match &self.http {
            Some(text) => crate::options::http_address(text)?,
            None => Some(own),
        };
        let mut shutdown = Shutdown::new()?;
        let running = RunningController::start(file, secret, own.ip(), http, shutdown.ender())?;
        let operators = running.network.operators();
        stdout::print(&format!(
            "controller {} of {operators} operators, status {}\n",
            self.place,
            http::describe(running.http())
        ))?;
        let signal = shutdown.wait();
        if let Some(why) = running.failure() {
            bail!("{why}");
        }
        tracing::info!("{signal}: ending");
        Ok(ExitCode::SUCCESS)
    }
}

/// Stops on drop.
pub(crate) struct RunningController {
    pub network: Arc<Network>,
    process: Arc<ControllerProcess>,
    http: Option<Http>,
}

impl RunningController {
    /// Connects to operators from `source`. Calls `on_failure` if it has to stop by itself.
    pub(crate) fn start(
        file: ControllerFile,
        secret: Secret,
        source: IpAddr,
        http: Option<SocketAddr>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Self> {
        let ControllerFile { controllers, network, control, config, .. } = file;
        let place = ControllerPlace { controllers, place: config.place };
        let network = Arc::new(network);
        let listener = http.map(midflight_control::http::listen).transpose()?;
        // Half of the timeout: the rest is slack for a busy machine.
        let planner = Options { time_limit: Duration::from_nanos(config.plan_timeout / 2), ..Options::default() };
        let source = Some(source).filter(|source| !source.is_unspecified());
        let options = ControllerOptions { network: Arc::clone(&network), control, source, secret, config, planner };
        let process = Arc::new(ControllerProcess::start(options, on_failure)?);
        let seen = Seen { network: Arc::clone(&network), place, process: Arc::clone(&process) };
        let http = listener.map(|listener| Http::serve(listener, Arc::new(seen))).transpose()?;
        Ok(Self { network, process, http })
    }

    /// Why it stopped by itself, on one line.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.process.failure()
    }

    pub(crate) fn http(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Http::address)
    }
}

struct Seen {
    network: Arc<Network>,
    place: ControllerPlace,
    process: Arc<ControllerProcess>,
}

impl Seen {
    fn now(&self) -> ControllerSnapshot {
        let report = self.process.report();
        let streams = &report.streams;
        let shell = [
            ("streams_not_reached", streams.not_reached),
            ("streams_broken", streams.broken),
            ("streams_unproved", streams.unproved),
            ("streams_malformed", streams.malformed),
            ("messages_dropped", streams.dropped),
        ];
        let shell: ShellCounters = shell.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        let connected = &streams.connected;
        ControllerSnapshot::new(&self.network, &self.place, &report.status, report.plan, connected, shell)
    }
}

impl Source for Seen {
    fn snapshot(&self) -> Box<dyn AnySnapshot> {
        Box::new(self.now())
    }

    fn observer(self: Arc<Self>) -> Option<Box<dyn Observer>> {
        Some(Box::new(Looking::new(move || {
            let mut status = self.now();
            let detail = ControllerDetail::take(&mut status);
            Ok((status, Some(detail)))
        })))
    }

    fn silent_for(&self) -> Duration {
        self.process.silent_for()
    }
}
