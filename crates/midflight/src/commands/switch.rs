//! `midflight switch`: the task queue on this machine.

use crate::signals::Shutdown;
use crate::{stdout, usage};
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_control::http::{Server, Source};
use midflight_control::{Config, ShellCounters, Snapshot, config};
use midflight_host::{Engine, SocketBuffers, Switch, SwitchConfig};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
EXAMPLES
  midflight switch                                    UDP port 7700; status on 127.0.0.1:7701
  midflight switch --listen [::]:7700                 IPv6 and IPv4
  midflight switch --print-config > midflight.toml    every bound and timeout, explained
  midflight switch --config midflight.toml
  curl http://127.0.0.1:7701/metrics                  for Prometheus; also /healthz and /status

SIGINT and SIGTERM end it. What it held is gone; clients submit again to its successor.

EXIT CODES
  0 ended by a signal, 1 failed (port in use), 2 wrong usage or configuration";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    file: usage::ConfigFile,
    /// UDP address to serve on; wins over the configuration; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// TCP address of /metrics, /healthz and /status, or "off"; wins over the configuration
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Print the commented default configuration and end
    #[arg(long)]
    print_config: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.print_config {
        stdout::print(config::DEFAULT_TOML)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut config = args.file.load()?;
    usage::override_addresses(&mut config, args.listen.as_deref(), args.http.as_deref())?;
    let mut shutdown = Shutdown::new()?;
    let running = Running::start(&config)?;
    let http = running.http.map_or_else(|| "off".into(), |address| format!("http://{address}"));
    let (address, epoch) = (running.switch.local_addr(), running.switch.epoch());
    stdout::print(&format!("switch on {address} (epoch {epoch}), status {http}\n"))?;
    let signal = shutdown.wait();
    tracing::info!("{signal}: ending");
    Ok(ExitCode::SUCCESS)
}

/// A switch and its HTTP server; dropping it ends both.
#[derive(Debug)]
pub(crate) struct Running {
    /// The switch.
    pub switch: Arc<Switch>,
    /// Where HTTP is served, if at all.
    pub http: Option<SocketAddr>,
    /// Serves HTTP; the data path has a thread of its own.
    _runtime: Option<tokio::runtime::Runtime>,
}

impl Running {
    /// Starts both.
    pub(crate) fn start(config: &Config) -> Result<Self> {
        let buffers = SocketBuffers {
            receive_bytes: config.socket.receive_buffer_bytes as usize,
            send_bytes: config.socket.send_buffer_bytes as usize,
        };
        let tasks = (&config.tasks).into();
        let switch = Arc::new(Switch::start(&SwitchConfig { listen: config.listen, tasks, buffers, engine: Engine::User })?);
        let Some(address) = config.http else {
            return Ok(Self { switch, http: None, _runtime: None });
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mf-http")
            .enable_all()
            .build()
            .context("cannot start the HTTP server")?;
        let server = runtime.block_on(Server::bind(address))?;
        let http = server.address();
        let source =
            Arc::new(Seen { switch: Arc::clone(&switch), levels: config.tasks.levels, started: Instant::now() });
        runtime.spawn(async move {
            if let Err(error) = server.serve(source, std::future::pending()).await {
                tracing::error!(%error, "the HTTP server ended");
            }
        });
        Ok(Self { switch, http: Some(http), _runtime: Some(runtime) })
    }
}

/// A switch as its HTTP server sees it.
struct Seen {
    switch: Arc<Switch>,
    levels: u32,
    started: Instant,
}

impl Source for Seen {
    fn snapshot(&self) -> Snapshot {
        let uptime_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (stats, listen) = (self.switch.stats(), self.switch.local_addr());
        Snapshot::new(&stats, self.levels, listen, self.switch.epoch(), uptime_ms, shell_counters(&self.switch))
    }

    fn silent_for(&self) -> Duration {
        self.switch.silent_for()
    }
}

fn shell_counters(switch: &Switch) -> ShellCounters {
    let c = switch.socket_counts();
    let counts = [
        ("received", c.received),
        ("receive_calls", c.receive_calls),
        ("receive_errors", c.receive_errors),
        ("receive_oversized", c.receive_oversized),
        ("kernel_dropped", c.kernel_dropped),
        ("sent", c.sent),
        ("send_calls", c.send_calls),
        ("send_errors", c.send_errors),
        ("send_blocked", c.send_blocked),
    ];
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}
