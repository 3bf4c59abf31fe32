//! Starts a switch and its HTTP server: first the privileged steps, then the threads.

use super::engine;
use super::program::SwitchProgram;
use crate::http::Http;
use crate::options::buffers;
use anyhow::Result;
use midflight_control::http::Source;
use midflight_control::metrics::{AnySnapshot, named};
use midflight_control::watch::{Looking, Observer, OperatorParts};
use midflight_control::{Config, ShellCounters, Snapshot, Surroundings};
use midflight_dataplane::TasksProgram;
use midflight_host::{BoundSwitch, Diversion, EnginePlace, Error, Hosted, Switch, SwitchBuilder, SwitchEngine};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs in addition to the switch.
pub(crate) trait Companion: Send + Sync {
    /// The addition's part of the first line of output.
    fn describe(&self) -> String;
    fn counters(&self) -> ShellCounters;
    /// Why it stopped by itself, on one line.
    fn failure(&self) -> Option<String>;
    fn parts(&self) -> OperatorParts {
        OperatorParts::default()
    }
}

/// Stops on drop.
pub(crate) struct Running<P: SwitchProgram = TasksProgram> {
    pub switch: Arc<Switch<P>>,
    http: Option<Http>,
    companion: Option<Arc<dyn Companion>>,
}

impl<P: SwitchProgram> std::fmt::Debug for Running<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("switch", &self.switch).finish_non_exhaustive()
    }
}

/// A switch and its HTTP server after the privileged steps, without threads.
pub(crate) struct Prepared<P: SwitchProgram> {
    switch: BoundSwitch<P>,
    companion: Option<Arc<dyn Companion>>,
    listener: Option<std::net::TcpListener>,
    table: P::Table,
    http_names: Vec<String>,
    privileged: bool,
}

impl<P: SwitchProgram> Running<P> {
    /// Starts a switch in this process, with the configured engine.
    pub(crate) fn start(config: &Config<P::Table>) -> Result<Self> {
        Self::prepare(config)?.run(|| ())
    }

    pub(crate) fn prepare(config: &Config<P::Table>) -> Result<Prepared<P>> {
        Self::prepare_in(config, SwitchEngine::User, no_such_engine)
    }

    /// `start` starts an engine of the laboratory.
    pub(crate) fn prepare_in(
        config: &Config<P::Table>,
        engine: SwitchEngine,
        start: impl FnOnce(EnginePlace<'_, P>) -> Result<Box<dyn Hosted<P>>, Error>,
    ) -> Result<Prepared<P>> {
        let buffers = buffers(&config.switch.socket);
        let program = P::limits(&config.program);
        let privileged = matches!(engine, SwitchEngine::Kernel(_));
        let (listen, busy_poll) = (config.switch.listen, config.switch.socket.busy_poll);
        // First the steps that may fail without effect: with --keep, the programs serve on even if this process then fails.
        let listener = config.switch.http.map(midflight_control::http::listen).transpose()?;
        let builder = SwitchBuilder::of(program).listen(listen).buffers(buffers).engine(engine).busy_poll(busy_poll);
        let switch = builder.bind_with(start)?;
        let (table, http_names) = (config.program.clone(), config.switch.http_names.clone());
        Ok(Prepared { switch, companion: None, listener, table, http_names, privileged })
    }

    pub(crate) fn http(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Http::address)
    }

    /// Why the switch, or its addition, stopped by itself, on one line.
    pub(crate) fn failure(&self) -> Option<String> {
        let of_switch = self.switch.failure().map(str::to_owned);
        of_switch.or_else(|| self.companion.as_ref()?.failure())
    }

    pub(crate) fn describe_companion(&self) -> String {
        self.companion.as_ref().map_or_else(String::new, |companion| companion.describe())
    }
}

impl<P: SwitchProgram> Prepared<P> {
    /// Holds privileges that it no longer needs.
    pub(crate) fn is_privileged(&self) -> bool {
        self.privileged
    }

    pub(crate) fn port(&self) -> u16 {
        self.switch.local_addr().port()
    }

    /// Replaces the program's table in views, if it changed since `prepare`.
    pub(crate) fn set_table(&mut self, table: P::Table) {
        self.table = table;
    }

    /// Keeps packets to one address in this process.
    pub(crate) fn divert(&mut self, diversion: Diversion) {
        self.switch.divert(diversion);
    }

    /// Serves only this user and root: see [`BoundSwitch::serve_only`].
    pub(crate) fn serve_only(&mut self, user: u32) -> Result<()> {
        Ok(self.switch.serve_only(user)?)
    }

    pub(crate) fn set_companion(&mut self, companion: Arc<dyn Companion>) {
        self.companion = Some(companion);
    }

    /// Calls `on_failure` if the switch has to stop by itself.
    pub(crate) fn run(self, on_failure: impl FnOnce() + Send + 'static) -> Result<Running<P>> {
        let Self { switch, companion, listener, table, http_names, .. } = self;
        let switch = Arc::new(switch.run(on_failure)?);
        let seen = Seen {
            switch: Arc::clone(&switch),
            companion: companion.clone(),
            table,
            http_names,
            started: Instant::now(),
        };
        let http = listener.map(|listener| Http::serve(listener, Arc::new(seen))).transpose()?;
        Ok(Running { switch, http, companion })
    }
}

/// For engines that the switch itself starts.
pub(super) fn no_such_engine<P: SwitchProgram>(_place: EnginePlace<'_, P>) -> Result<Box<dyn Hosted<P>>, Error> {
    Err(Error::Invalid("this build has no such engine".into()))
}

struct Seen<P: SwitchProgram> {
    switch: Arc<Switch<P>>,
    companion: Option<Arc<dyn Companion>>,
    table: P::Table,
    http_names: Vec<String>,
    started: Instant,
}

impl<P: SwitchProgram> Seen<P> {
    fn now(&self) -> Snapshot<P::Status> {
        let stats = self.switch.stats();
        let mut shell = shell_counters(&self.switch);
        shell.extend(self.companion.iter().flat_map(|companion| companion.counters()));
        let surroundings = Surroundings {
            listen: self.switch.local_addr(),
            engine: engine::status(self.switch.engine()),
            epoch: self.switch.epoch(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            shell,
        };
        let status = P::status(&stats, &self.table, self.switch.engine());
        Snapshot::new(surroundings, &stats, status)
    }
}

impl<P: SwitchProgram> Source for Seen<P> {
    fn snapshot(&self) -> Box<dyn AnySnapshot> {
        Box::new(self.now())
    }

    fn observer(self: Arc<Self>) -> Option<Box<dyn Observer>> {
        let mut details = P::details(&self.table, self.switch.engine());
        Some(Box::new(Looking::new(move || {
            let status = self.now();
            let detail = details(&self.switch, self.companion.as_deref(), &status.program)?;
            Ok((status, detail))
        })))
    }

    fn host_names(&self) -> &[String] {
        &self.http_names
    }

    fn silent_for(&self) -> Duration {
        self.switch.silent_for()
    }
}

fn shell_counters<P: SwitchProgram>(switch: &Switch<P>) -> ShellCounters {
    named("", switch.socket_counts().by_name().into_iter().chain(switch.shell_counts())).collect()
}
