//! An agent of a backend in this process, and its HTTP server.

use crate::http::Http;
use anyhow::Result;
use midflight_control::ShellCounters;
use midflight_control::cache::agent_status::AgentStatus;
use midflight_control::http::Source;
use midflight_control::metrics::{AnySnapshot, named};
use midflight_host::cache::agent::{Agent, AgentOptions, AgentReport};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Stops on drop.
#[derive(Debug)]
pub(crate) struct RunningAgent {
    pub agent: Arc<Agent>,
    http: Option<Http>,
}

impl RunningAgent {
    /// Calls `on_failure` if it has to stop by itself.
    pub(crate) fn start(
        options: AgentOptions,
        http: Option<SocketAddr>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Self> {
        let listener = http.map(midflight_control::http::listen).transpose()?;
        let seen = (options.operator, options.backend.to_string(), options.slots as u64);
        let agent = Arc::new(Agent::start(options, on_failure)?);
        let (operator, backend, slots) = seen;
        let source = Arc::new(Seen { agent: Arc::clone(&agent), operator, backend, slots });
        let http = listener.map(|listener| Http::serve(listener, source)).transpose()?;
        Ok(Self { agent, http })
    }

    pub(crate) fn http(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Http::address)
    }
}

struct Seen {
    agent: Arc<Agent>,
    operator: Option<SocketAddr>,
    backend: String,
    slots: u64,
}

impl Source for Seen {
    fn snapshot(&self) -> Box<dyn AnySnapshot> {
        Box::new(self.status())
    }

    fn silent_for(&self) -> Duration {
        self.agent.silent_for()
    }
}

impl Seen {
    fn status(&self) -> AgentStatus {
        let report = self.agent.report();
        AgentStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            listen: self.agent.local_addr(),
            operator: self.operator,
            backend: self.backend.clone(),
            backend_is_gone: report.backend_is_gone.clone(),
            slots: self.slots,
            queue: report.waiting as u64,
            served: report.served as u64,
            service_time_us: report.service_time.map(|nanos| nanos as f64 / 1e3),
            utilization: report.load.utilization,
            answered_per_s: report.load.answered_per_s,
            refused_per_s: report.load.refused_per_s,
            streams: report.connections.open,
            counters: counters(&report),
            shell: shell(&report),
        }
    }
}

fn counters(report: &AgentReport) -> ShellCounters {
    let of_server = report.server.by_name().into_iter().map(|(name, count)| match name {
        "other_version" => ("packets_of_other_version", count),
        _ => (name, count),
    });
    named("", of_server.chain(report.counters.by_name())).collect()
}

fn shell(report: &AgentReport) -> ShellCounters {
    let streams = report.connections;
    let own =
        [("refused", streams.refused), ("made_room", streams.made_room), ("accept_failed", streams.accept_failed)];
    named("", report.socket.by_name()).chain(named("streams_", own)).collect()
}
