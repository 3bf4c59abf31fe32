//! `midflight up --cache`: a cache on this machine: three memcached, their agents, an operator with its selector, and a controller.

use super::{Args, ports};
use crate::commands::controller::RunningController;
use crate::commands::switch::{Running, SwitchProgram};
use crate::embedded::ServedUsers;
use crate::options;
use anyhow::{Context, Result, bail};
use midflight_cache::backend::BackendAddress;
use midflight_cache::control::network::{HostAt, OperatorAt, ReplicaGroup, ServerAt};
use midflight_cache::control::{ControllerConfig, Network, NetworkParts, Start};
use midflight_cache::keyspace::Keyspace;
use midflight_cache::select::Algorithm;
use midflight_control::cache::clients::{AGENTS, CacheFile};
use midflight_control::cache::table::{ControlTable, SelectorTable};
use midflight_control::cache::{CacheTable, ControllerFile};
use midflight_control::config::DEFAULT_PORT;
use midflight_control::{Config, SwitchTable};
use midflight_dataplane::cache::CacheProgram;
use midflight_endpoint::{MS, SECOND};
use midflight_host::cache::agent::{Agent, AgentOptions};
use midflight_host::cache::control_stream::Secret;
use midflight_placement::{Accelerator, input};
use midflight_terminal::files::temporary;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::stdout;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest start of a backend.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mut switch =
        SwitchTable { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)), ..SwitchTable::default() };
    options::override_addresses(&mut switch, args.listen.as_deref(), args.http.as_deref())?;
    let mut shutdown = Shutdown::new()?;
    let backends = Backends::start()?;
    let served = ServedUsers::at(switch.listen, args.any_user);
    let cache = Cache::start(switch, served, args.selector, &backends, &shutdown)?;
    stdout::print(&cache.greeting(args.selector))?;
    shutdown.wait();
    if let Some(why) = cache.failure() {
        bail!("{why}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Three memcached processes, and the secret that operator and controller share. Dropping it stops and removes them.
struct Backends {
    children: Vec<Child>,
    directory: TempDir,
    secret: PathBuf,
}

impl Backends {
    fn start() -> Result<Self> {
        let directory = temporary("midflight-cache-")?;
        let secret = directory.path().join("secret");
        Secret::new(rand::random()).write(&secret).context("cannot write a secret")?;
        let mut backends = Self { children: Vec::new(), directory, secret };
        for backend in 0..AGENTS {
            backends.children.push(memcached(&backends.socket(backend))?);
        }
        (0..AGENTS).try_for_each(|backend| backends.wait_for(backend))?;
        Ok(backends)
    }

    fn socket(&self, backend: u16) -> PathBuf {
        self.directory.path().join(format!("backend-{backend}"))
    }

    fn wait_for(&mut self, backend: u16) -> Result<()> {
        let socket = self.socket(backend);
        let started = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            if let Some(ended) = self.children[usize::from(backend)].try_wait()? {
                bail!("memcached has ended ({ended}): what it said is above");
            }
            if started.elapsed() > PATIENCE {
                bail!("memcached does not begin within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Backends {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have exited by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn memcached(socket: &Path) -> Result<Child> {
    let mut command = Command::new("memcached");
    // As root, memcached requires a user; another one could not create the socket.
    command.args(["-u", "root", "-m", "64", "-a", "0600", "-s"]).arg(socket).stdin(Stdio::null());
    midflight_host::process::children::end_with_this_process(&mut command);
    command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            anyhow::anyhow!(
                "there is no memcached on this machine: install it (Debian, Ubuntu: apt-get install memcached)"
            )
        }
        _ => anyhow::Error::new(error).context("cannot start memcached"),
    })
}

struct Cache {
    operator: Running<CacheProgram>,
    agents: Vec<Agent>,
    controller: RunningController,
}

impl Cache {
    fn start(
        switch: SwitchTable,
        served: ServedUsers,
        selector: Algorithm,
        backends: &Backends,
        shutdown: &Shutdown,
    ) -> Result<Self> {
        let local = switch.listen.ip();
        if local.is_unspecified() {
            bail!("a selector knows its operator by one address: --listen 127.0.0.1:7700, for example");
        }
        let free = SocketAddr::new(local, 0);
        let mut config = Config { switch, program: CacheTable::default() };
        config.program.control =
            ControlTable { listen: free, from: [local].into(), secret: Some(backends.secret.clone()) };
        config.program.selector = Some(SelectorTable { algorithm: selector, ..SelectorTable::new(free) });
        let agents_at = |port| {
            let address = SocketAddr::new(local, port);
            let agents = CacheFile::of_up(Some(address)).servers.into_iter().zip(0..);
            let agents = agents.map(|(at, backend)| agent(at, address, served, &backends.socket(backend), shutdown));
            agents.collect::<Result<Vec<_>>>()
        };
        let (mut prepared, agents) = ports::prepare::<CacheProgram, _>(&config, agents_at)?;
        served.apply(&mut prepared)?;
        let address = SocketAddr::new(local, prepared.port());
        let mut companion = CacheProgram::companion(&config, prepared.port())?;
        let (control, selector) = (companion.control(), companion.selector());
        CacheProgram::attach(&mut companion, &mut prepared);
        let operator = prepared.run(shutdown.ender())?;
        CacheProgram::begin(companion, &operator.switch, shutdown.ender())?;
        let servers: Vec<SocketAddr> = agents.iter().map(Agent::local_addr).collect();
        let file = ControllerFile {
            controllers: vec![free],
            secret: Some(backends.secret.clone()),
            network: network(local, address, selector, &servers)?,
            control: vec![control],
            config: ControllerConfig {
                start: Start::OwnRack,
                longest_response: 2 * SECOND,
                ask_every: 50 * MS,
                ..ControllerConfig::default()
            },
        };
        let secret = Secret::read(&backends.secret).map_err(|why| anyhow::anyhow!("{why}"))?;
        let controller = RunningController::start(file, secret, local, Some(free), shutdown.ender())?;
        Ok(Self { operator, agents, controller })
    }

    fn failure(&self) -> Option<String> {
        let of_agent =
            self.agents.iter().find_map(|agent| agent.failure().map(|why| format!("an agent has ended: {why}")));
        let of_operator = self.operator.failure().map(|why| format!("the operator has ended: {why}"));
        let of_controller = self.controller.failure().map(|why| format!("the controller has ended: {why}"));
        of_operator.or(of_agent).or(of_controller)
    }

    fn greeting(&self, selector: Algorithm) -> String {
        let address = self.operator.switch.local_addr();
        let of_cache = if address.port() == DEFAULT_PORT { String::new() } else { format!(" --operator {address}") };
        let agents: Vec<_> = self.agents.iter().map(|agent| agent.local_addr().port().to_string()).collect();
        let operator =
            self.operator.http().map_or_else(String::new, |http| format!("  midflight status --http {http}\n"));
        let controller = self.controller.http();
        let controller =
            controller.map_or_else(String::new, |http| format!("  midflight controller status --http {http}\n"));
        format!(
            "operator on {address}, selector {selector}; three memcached behind agents on ports {}. In another terminal:\n\n  \
             midflight cache set greeting hello{of_cache}\n  midflight cache get greeting{of_cache}\n\
             {operator}{controller}\nCtrl-C ends it; what is cached is gone then.\n",
            agents.join(", ")
        )
    }
}

fn agent(
    address: SocketAddr,
    operator: SocketAddr,
    served: ServedUsers,
    socket: &Path,
    shutdown: &Shutdown,
) -> Result<Agent> {
    let backend: BackendAddress = format!("memcached://{}", socket.display()).parse()?;
    let options = AgentOptions {
        operator: Some(operator),
        senders: Some([operator.ip()].into()),
        only_user: served.user(),
        ..AgentOptions::new(address, backend)
    };
    Ok(Agent::start(options, shutdown.ender())?)
}

/// One rack, with this machine in it.
fn network(
    local: IpAddr,
    operator: SocketAddr,
    selector: Option<SocketAddr>,
    servers: &[SocketAddr],
) -> Result<Network> {
    const TOPOLOGY: &str = "racks = [{ id = \"rack\", tor = \"operator\", hosts = [\"here\"] }]";
    let keyspace = Keyspace::new(servers, servers.len(), 0)?;
    let groups = keyspace.groups().map(|(id, servers)| ReplicaGroup { id, servers: servers.to_vec() });
    Ok(Network::new(NetworkParts {
        topology: input::topology(TOPOLOGY, &Accelerator::paper("here".into()))
            .map_err(|error| anyhow::anyhow!("{error}"))?,
        operators: vec![OperatorAt { switch: "operator".into(), address: operator, selector }],
        hosts: vec![HostAt { host: "here".into(), ip: local }],
        servers: servers.iter().map(|&address| ServerAt { at: "rack".into(), address }).collect(),
        replica_groups: groups.collect(),
        ..NetworkParts::default()
    })?)
}
