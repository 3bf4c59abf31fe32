//! `midflight agent`: an agent in front of memcached or Redis.

use crate::agent::RunningAgent;
use crate::http;
use crate::options::http_address;
use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use midflight_cache::backend::BackendAddress;
use midflight_cache::server::ServiceTime;
use midflight_host::cache::agent::AgentOptions;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::stdout;
use midflight_terminal::usage::{duration, error, resolve};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight agent --backend memcached://127.0.0.1:11211 --listen 10.0.2.1:7800 \\
      --operator 10.0.2.254:7700 --senders 10.0.1.254,10.0.2.254
  midflight agent --backend redis://127.0.0.1:6379/1 --listen 127.0.0.1:7800  direct requests only
  midflight agent --backend memcached:///run/memcached.sock --listen 10.0.2.1:7800 --slots 8 \\
      --operator 10.0.2.254:7700 --http 127.0.0.1:7812                        with metrics

An agent stands before each backend, on the same machine. Operators and clients reach it by UDP and
TCP at one address; requests name it by that address, so it is not 0.0.0.0. Requests wait in the
agent, not in the backend: --slots says how many the backend is asked at once, and the answers tell
selectors how many wait.

It starts also when the backend is not there yet, and refuses requests until it is. SIGINT and
SIGTERM end it: what the backend was asked is answered before. docs/cache.md has more.

EXIT CODES
  0 ended by a signal, 1 failed (a port in use), 2 wrong usage";

/// What it says of its service time.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ServiceTimeKind {
    /// That of the request that it answers
    Present,
    /// A mean of the last ones
    Mean,
}

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The backend: memcached://HOST:PORT, memcached:///PATH, redis://HOST:PORT/DATABASE or
    /// redis+unix:///PATH
    #[arg(long, value_name = "URL")]
    backend: BackendAddress,
    /// Where operators and clients reach it, by UDP and TCP
    #[arg(long, value_name = "HOST:PORT")]
    listen: String,
    /// The operator of its rack, which gets the answers; without one, direct requests only
    #[arg(long, value_name = "HOST:PORT")]
    operator: Option<String>,
    /// Addresses of all operators and selectors, from which requests may come; default: all
    #[arg(long, value_name = "IP,...", value_delimiter = ',', requires = "operator")]
    senders: Vec<IpAddr>,
    /// Requests that the backend is asked at once, each over a connection of its own
    #[arg(long, value_name = "N", default_value_t = 4)]
    slots: usize,
    /// Requests that may wait; further ones are refused
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    queue: usize,
    /// A request that has waited for longer is refused
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s")]
    wait: Duration,
    /// A backend that does not answer for longer is not waited for
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s")]
    backend_timeout: Duration,
    /// Bytes of the longest answer in a datagram, with our headers; longer values go over TCP
    #[arg(long, value_name = "BYTES", default_value_t = midflight_wire::PACKET_MAX)]
    datagram_max: usize,
    /// What answers say of the service time
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ServiceTimeKind::Present)]
    service_time: ServiceTimeKind,
    /// The same as --slots for what comes over TCP: long values, writes
    #[arg(long, value_name = "N", default_value_t = 4)]
    stream_slots: usize,
    /// TCP connections at once; one address gets 8/9 of them
    #[arg(long, value_name = "N", default_value_t = 256)]
    connections: usize,
    /// TCP address of /metrics, /healthz and /status; default: off
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
}

impl Args {
    fn options(&self) -> Result<AgentOptions> {
        let address = resolve(&self.listen)?;
        if address.ip().is_unspecified() {
            return Err(error(format!("requests name the agent by its address: --listen {address} is none")));
        }
        Ok(AgentOptions {
            operator: self.operator.as_deref().map(resolve).transpose()?,
            senders: (!self.senders.is_empty()).then(|| self.senders.iter().copied().collect::<BTreeSet<_>>()),
            slots: self.slots,
            queue_max: self.queue,
            wait_max: self.wait,
            backend_timeout: self.backend_timeout,
            datagram_max: self.datagram_max,
            service_time: match self.service_time {
                ServiceTimeKind::Present => ServiceTime::Present,
                ServiceTimeKind::Mean => ServiceTime::Mean,
            },
            stream_slots: self.stream_slots,
            connections_max: self.connections,
            ..AgentOptions::new(address, self.backend.clone())
        })
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let options = args.options()?;
    let http = args.http.as_deref().map(http_address).transpose()?.flatten();
    let mut shutdown = Shutdown::new()?;
    if options.operator.is_some() && options.senders.is_none() {
        tracing::warn!(
            "without --senders anybody who reaches this agent can have its answers sent to any host: list the addresses of \
             operators and selectors, or keep others away"
        );
    }
    let running = RunningAgent::start(options, http, shutdown.ender()).map_err(|failed| {
        // A wrong bound is wrong usage.
        match failed.downcast::<midflight_host::Error>() {
            Ok(midflight_host::Error::Invalid(text)) => error(text),
            Ok(other) => other.into(),
            Err(other) => other,
        }
    })?;
    let agent = &running.agent;
    let is_there = agent.report().backend_is_gone.map_or("there".into(), |why| format!("not there yet ({why})"));
    let operator = args.operator.as_deref().unwrap_or("none: direct requests only");
    stdout::print(&format!(
        "agent on {}, backend {} is {is_there}, operator {operator}, status {}\n",
        agent.local_addr(),
        args.backend,
        http::describe(running.http())
    ))
    .context("cannot say where it listens")?;
    let signal = shutdown.wait();
    if let Some(why) = agent.failure() {
        bail!("{why}");
    }
    tracing::info!("{signal}: ending");
    agent.finish();
    Ok(ExitCode::SUCCESS)
}
