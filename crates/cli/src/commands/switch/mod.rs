//! `midflight switch`: runs a program on this machine. [`program`] has the trait; a file per program implements it.

mod cache;
mod engine;
mod program;
mod running;
mod store;
mod tasks;

pub(crate) use program::SwitchProgram;
pub(crate) use running::{Prepared, Running};

use crate::{http, options};
use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use midflight_control::{CacheTable, Config, ProgramTable, StoreTable, TasksTable, config};
use midflight_dataplane::TasksProgram;
use midflight_dataplane::cache::CacheProgram;
use midflight_dataplane::program::Program;
use midflight_dataplane::store::StoreProgram;
use midflight_host::process::privileges;
use midflight_host::{EnginePlace, Error, Hosted, Inheritance, SwitchEngine};
use midflight_terminal::signals::Shutdown;
use midflight_terminal::{stdout, usage};
pub use program::Named;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const EXAMPLES: &str = "\
EXAMPLES
  midflight switch                                    UDP port 7700; status on 127.0.0.1:7701
  midflight switch --listen [::]:7700                 IPv6 and IPv4
  midflight switch --print-config > midflight.toml    every bound and timeout, explained
  midflight switch --config midflight.toml
  curl http://127.0.0.1:7701/metrics                  for Prometheus; also /healthz and /status
  xdg-open http://127.0.0.1:7701/                     a page that shows what it does

In the kernel, as XDP and TC programs on these interfaces; in generic mode where the driver takes no
XDP program; with --keep the queue outlives the process, and the same again takes it over; --detach
lets go what was kept:
  sudo midflight switch --engine kernel --interface eth0,eth1
  sudo midflight switch --engine kernel --interface wlan0 --mode generic
  sudo midflight switch --engine kernel --interface eth0 --keep
  sudo midflight switch --detach

The switch of a store, which sends each read to a replica that is up to date (docs/store.md):
  midflight switch --config store.toml                the file has a table [store]
  midflight switch --program store --print-config

An operator of NetRS, which sends each read of a cache to the replica that answers soonest
(docs/cache.md):
  midflight switch --config operator.toml             the file has a table [cache]
  midflight switch --program cache --print-config

SIGINT and SIGTERM end it. What it held is gone; clients submit again to its successor. With --keep
the programs serve on, without leases, until the next start takes them over. A switch in the kernel
drops all privileges as soon as it serves.

EXIT CODES
  0 ended by a signal, 1 failed (port in use, no privileges, an interface that is missing or went
  away), 2 wrong usage or configuration";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    common: SwitchArgs,
    #[command(flatten)]
    engine: engine::Options,
    /// Print the commented default configuration and end
    #[arg(long)]
    print_config: bool,
}

/// Options common to all engines.
#[derive(ClapArgs)]
pub struct SwitchArgs {
    #[command(flatten)]
    file: options::ConfigFile,
    /// What it does; default: that whose table the configuration has, or else tasks
    #[arg(long, value_name = "PROGRAM")]
    program: Option<Named>,
    /// UDP address to serve on; wins over the configuration; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// TCP address of the page, /metrics, /healthz and /status, or "off"; wins over the configuration
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match args.common.program()? {
        Named::Tasks => run_program::<TasksProgram>(args),
        Named::Store => run_program::<StoreProgram>(args),
        Named::Cache => run_program::<CacheProgram>(args),
    }
}

impl SwitchArgs {
    /// The program of the configuration, or of the flag.
    ///
    /// # Errors
    /// If the configuration cannot be read.
    pub fn program(&self) -> Result<Named> {
        if let Some(named) = self.program {
            return Ok(named);
        }
        let Some(file) = &self.file.config else { return Ok(Named::Tasks) };
        let programs = [TasksTable::NAME, StoreTable::NAME, CacheTable::NAME];
        let tables = config::tables_of(file, &programs).map_err(usage::error)?;
        Ok(match tables[..] {
            [StoreTable::NAME] => Named::Store,
            [CacheTable::NAME] => Named::Cache,
            _ => Named::Tasks,
        })
    }

    fn load<P: SwitchProgram>(&self) -> Result<Config<P::Table>> {
        let mut config: Config<P::Table> = self.file.load()?;
        options::override_addresses(&mut config.switch, self.listen.as_deref(), self.http.as_deref())?;
        Ok(config)
    }
}

/// An engine that the laboratory adds, for a program with this table in the configuration.
pub trait ExternalEngine<P: Program, T> {
    /// Name for the first line and `/status`.
    fn name(&self) -> String;

    /// Adapts the configuration to the engine's abilities.
    ///
    /// # Errors
    /// Of usage, if the engine cannot serve it.
    fn adapt(&self, _config: &mut Config<T>) -> Result<()> {
        Ok(())
    }

    /// Starts the engine. Stops early if the flag is set.
    ///
    /// # Errors
    /// If it cannot run here.
    fn start(&self, place: &EnginePlace<'_, P>, interrupted: &Arc<AtomicBool>) -> Result<Box<dyn Hosted<P>>, Error>;
}

/// Runs a tasks switch in another engine until a signal.
///
/// # Errors
/// As the command.
pub fn run_tasks_in(args: &SwitchArgs, engine: &impl ExternalEngine<TasksProgram, TasksTable>) -> Result<ExitCode> {
    run_with_engine(args, engine)
}

/// Runs a store switch in another engine until a signal.
///
/// # Errors
/// As the command.
pub fn run_store_in(args: &SwitchArgs, engine: &impl ExternalEngine<StoreProgram, StoreTable>) -> Result<ExitCode> {
    run_with_engine(args, engine)
}

fn run_with_engine<P: SwitchProgram>(args: &SwitchArgs, engine: &impl ExternalEngine<P, P::Table>) -> Result<ExitCode> {
    let mut config = args.load::<P>()?;
    engine.adapt(&mut config)?;
    serve::<P>(&config, SwitchEngine::Other(engine.name()), |place, interrupted| engine.start(&place, interrupted))
}

fn run_program<P: SwitchProgram>(args: &Args) -> Result<ExitCode> {
    if args.print_config {
        stdout::print(&Config::<P::Table>::default_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let config = args.common.load::<P>()?;
    if args.engine.detach {
        return detach(config.switch.listen.port());
    }
    let engine = args.engine.apply::<P>(&config)?;
    serve::<P>(&config, engine, |place, _| running::no_such_engine(place))
}

/// `start` starts an engine of the laboratory.
fn serve<P: SwitchProgram>(
    config: &Config<P::Table>,
    engine: SwitchEngine,
    start: impl FnOnce(EnginePlace<'_, P>, &Arc<AtomicBool>) -> Result<Box<dyn Hosted<P>>, Error>,
) -> Result<ExitCode> {
    let mut shutdown = Shutdown::new()?;
    let interrupted = shutdown.flag()?;
    let mut prepared = match Running::<P>::prepare_in(config, engine, |place| start(place, &interrupted)) {
        Err(_) if interrupted.load(Ordering::Relaxed) => {
            tracing::info!("{}: ending, before it served", shutdown.wait());
            return Ok(ExitCode::SUCCESS);
        }
        prepared => prepared?,
    };
    let mut companion = P::companion(config, prepared.port())?;
    P::attach(&mut companion, &mut prepared);
    if prepared.is_privileged() {
        let left = privileges::drop_all()?;
        tracing::info!("{left}");
    }
    let running = prepared.run(shutdown.ender())?;
    P::begin(companion, &running.switch, shutdown.ender())?;
    stdout::print(&greeting(&running))?;
    let signal = shutdown.wait();
    if let Some(why) = running.failure() {
        bail!("{why}");
    }
    tracing::info!("{signal}: ending");
    if let Some(interfaces) = engine::kept_on(running.switch.engine()) {
        let port = running.switch.local_addr().port();
        eprintln!(
            "its programs serve on, on {interfaces}, without leases; `midflight switch --detach --listen 0.0.0.0:{port}` \
             lets them go"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn detach(port: u16) -> Result<ExitCode> {
    let found = midflight_host::detach(port)?;
    let text = if found { "detached; its queue is gone" } else { "nothing is kept" };
    stdout::print(&format!("port {port}: {text}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn greeting<P: SwitchProgram>(running: &Running<P>) -> String {
    let switch = &running.switch;
    let inherited = match switch.inheritance() {
        Inheritance::None => String::new(),
        Inheritance::TakenOver => format!(", taken over with {}", P::inherited(&switch.stats())),
        Inheritance::ThrownAway => ", in the place of one that was kept and is gone".into(),
    };
    let engine = engine::describe(switch.engine());
    let (companion, http) = (running.describe_companion(), http::describe(running.http()));
    format!(
        "switch on {} (epoch {}){inherited}{engine}{companion}, status {http}\n",
        switch.local_addr(),
        switch.epoch()
    )
}
