//! Starts a switch and its HTTP server: first what needs privileges, then the threads.

use super::engine;
use anyhow::{Context, Result};
use midflight_control::http::{Limits, Server, Source};
use midflight_control::metrics::AnySnapshot;
use midflight_control::{Config, ShellCounters, Snapshot, Surroundings, TasksStatus};
use midflight_host::{BoundSwitch, SocketBuffers, Switch, SwitchConfig, SwitchEngine};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// Both, with all that needs privileges done, but without threads.
#[derive(Debug)]
pub(crate) struct Prepared {
    switch: BoundSwitch,
    listener: Option<std::net::TcpListener>,
    levels: u32,
    privileged: bool,
}

impl Running {
    /// Starts a switch in this process, by the engine that the configuration asks for, unless that is the kernel.
    pub(crate) fn start(config: &Config) -> Result<Self> {
        Self::prepare(config, engine::in_process(config, config.switch.engine.kind)?)?.run(|| ())
    }

    /// The first half of a start.
    pub(crate) fn prepare(config: &Config, engine: SwitchEngine) -> Result<Prepared> {
        let buffers = SocketBuffers {
            receive_bytes: config.switch.socket.receive_buffer_bytes as usize,
            send_bytes: config.switch.socket.send_buffer_bytes as usize,
        };
        let program = config.program.bounds;
        let (privileged, levels) = (matches!(engine, SwitchEngine::Kernel(_)), engine::levels(&engine, config));
        let (listen, busy_poll) = (config.switch.listen, config.switch.socket.busy_poll);
        // First what may fail without effect, because with --keep the programs serve on even if this process then fails.
        let listener = config.switch.http.map(midflight_control::http::listen).transpose()?;
        let switch = Switch::bind(&SwitchConfig { listen, program, buffers, engine, busy_poll })?;
        Ok(Prepared { switch, listener, levels, privileged })
    }
}

impl Prepared {
    /// Whether it needed privileges that it does not need any more.
    pub(crate) fn is_privileged(&self) -> bool {
        self.privileged
    }

    /// The UDP port that it serves.
    pub(crate) fn port(&self) -> u16 {
        self.switch.local_addr().port()
    }

    /// The other half. `on_failure` is called where the switch has to end by itself.
    pub(crate) fn run(self, on_failure: impl FnOnce() + Send + 'static) -> Result<Running> {
        let Self { switch, listener, levels, .. } = self;
        let switch = Arc::new(switch.run(on_failure)?);
        let Some(listener) = listener else {
            return Ok(Running { switch, http: None, _runtime: None });
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mf-http")
            .enable_all()
            .build()
            .context("cannot start the HTTP server")?;
        let server = {
            let _within = runtime.enter();
            Server::new(listener, Limits::default())?
        };
        let http = server.address();
        let source = Arc::new(Seen { switch: Arc::clone(&switch), levels, started: Instant::now() });
        runtime.spawn(server.serve(source));
        Ok(Running { switch, http: Some(http), _runtime: Some(runtime) })
    }
}

/// A switch as its HTTP server sees it.
struct Seen {
    switch: Arc<Switch>,
    levels: u32,
    started: Instant,
}

impl Source for Seen {
    fn snapshot(&self) -> Box<dyn AnySnapshot> {
        let stats = self.switch.stats();
        let surroundings = Surroundings {
            listen: self.switch.local_addr(),
            engine: engine::status(self.switch.engine()),
            epoch: self.switch.epoch(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            shell: shell_counters(&self.switch),
        };
        Box::new(Snapshot::new(surroundings, &stats, TasksStatus::new(&stats, self.levels)))
    }

    fn silent_for(&self) -> Duration {
        self.switch.silent_for()
    }
}

fn shell_counters(switch: &Switch) -> ShellCounters {
    let c = switch.socket_counts();
    let of_socket = [
        ("received", c.received),
        ("receive_calls", c.receive_calls),
        ("receive_errors", c.receive_errors),
        ("receive_oversized", c.receive_oversized),
        ("kernel_dropped", c.kernel_dropped),
        ("sent", c.sent),
        ("send_calls", c.send_calls),
        ("send_errors", c.send_errors),
        ("send_too_long", c.send_too_long),
        ("send_blocked", c.send_blocked),
        ("send_to_unproven", c.send_to_unproven),
    ];
    let all = of_socket.into_iter().chain(switch.shell_counts());
    all.map(|(name, count)| (name.to_owned(), count)).collect()
}
