//! `midflight up --store`: three replicas and a switch in this process.

use super::data::Data;
use super::{Args, ports};
use crate::commands::store::serve;
use crate::commands::switch::{Running, SwitchProgram};
use crate::embedded::ServedUsers;
use crate::options;
use crate::replica::{RunningReplica, Which};
use anyhow::{Result, bail};
use midflight_control::config::{DEFAULT_PORT, SocketConfig};
use midflight_control::store::{ReadMode, ReplicaStart, SetTable};
use midflight_control::{Config, StoreTable, SwitchTable};
use midflight_dataplane::store::StoreProgram;
use midflight_host::Error;
use midflight_host::links::listen;
use midflight_host::store::StoreClient;
use midflight_host::store::gateway::{Gateway, GatewayOptions};
use midflight_terminal::signals::Shutdown;
use midflight_terminal::stdout;
use midflight_terminal::usage::resolve;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::ExitCode;

/// Where Redis' clients look for it, and how many ports after it may be taken instead.
const GATEWAY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6379);
const GATEWAY_PORTS: u16 = 100;
/// Replicas in a replicating mode.
pub(super) const REPLICAS: u16 = 3;

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mut switch =
        SwitchTable { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)), ..SwitchTable::default() };
    options::override_addresses(&mut switch, args.listen.as_deref(), args.http.as_deref())?;
    let mut shutdown = Shutdown::new()?;
    let mut config = Config { switch, program: StoreTable::default() };
    let data = Data::new(args.data.as_deref())?;
    let replicas = if args.reads == ReadMode::Unreplicated { 1 } else { REPLICAS };
    let (mut prepared, (set, links)) = ports::prepare::<StoreProgram, _>(&config, |port| {
        let set = SetTable { reads: args.reads, ..SetTable::on_loopback(data.cluster()?, replicas, 1, port) };
        let links = set.replicas.iter().map(|replica| listen(replica.links)).collect::<Result<Vec<_>, _>>()?;
        Ok((set, links))
    })?;
    ServedUsers::at(config.switch.listen, args.any_user).apply(&mut prepared)?;
    let port = prepared.port();
    config.program.set = vec![set.clone()];
    prepared.set_table(config.program.clone());
    data.prepare(&set)?;
    let running = prepared.run(|| ())?;
    StoreProgram::begin(StoreProgram::companion(&config, port)?, &running.switch, || ())?;
    let replicas = start(&set, &data, links, &config.switch.socket, &shutdown)?;
    check_addresses(&set, &data, &replicas)?;
    let gateway = match args.redis.as_deref() {
        Some("off") => None,
        address => Some(gateway(address, args.any_user, &set, port, &shutdown)?),
    };
    stdout::print(&greeting(&running, &set, &data, gateway.as_ref()))?;
    shutdown.wait();
    if let Some(why) = gateway.as_ref().and_then(Gateway::failure) {
        bail!("{why}");
    }
    if let Some(why) = replicas.iter().find_map(|replica| replica.process.failure()) {
        bail!("a replica has ended: {why}");
    }
    Ok(ExitCode::SUCCESS)
}

/// `links`: all of them, because a replica that connects to another user's port would tell the store's number.
fn start(
    set: &SetTable,
    data: &Data,
    links: Vec<TcpListener>,
    socket: &SocketConfig,
    shutdown: &Shutdown,
) -> Result<Vec<RunningReplica>> {
    let one = |id: u64, links: TcpListener| {
        let (data, fsync, start, links) = (data.of(id), !data.is_temporary(), ReplicaStart::GoesOn, Some(links));
        let which = Which { set, id, start, data, fsync, links, socket, http: None, http_names: Vec::new() };
        RunningReplica::start(which, shutdown.ender())
    };
    set.replicas.iter().zip(links).map(|(replica, links)| one(replica.id, links)).collect()
}

/// At the default address, or the next one that is free.
fn gateway(address: Option<&str>, any_user: bool, set: &SetTable, port: u16, shutdown: &Shutdown) -> Result<Gateway> {
    let first = address.map_or(Ok(GATEWAY), resolve)?;
    let last = if address.is_some() { first.port() } else { first.port() + GATEWAY_PORTS };
    let mut at = first;
    loop {
        let only_user = ServedUsers::at(at, any_user).user();
        let options = GatewayOptions { only_user, ..GatewayOptions::new(at) };
        let switch = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let client = StoreClient::builder().switch(switch).set(set.number).lanes(serve::LANES).connect_lazy()?;
        match Gateway::start(client, options, shutdown.ender()) {
            Err(Error::Bind { .. }) if at.port() < last => at.set_port(at.port() + 1),
            started => return Ok(started?),
        }
    }
}

/// The data names the replicas' addresses, which follow from the switch's port; at another port they could not reach each other.
fn check_addresses(set: &SetTable, data: &Data, replicas: &[RunningReplica]) -> Result<()> {
    for (member, _) in replicas.iter().flat_map(|replica| replica.process.report().status.members) {
        let now = set.replicas.iter().find(|replica| replica.id == member.id).map(|replica| replica.address);
        if let Some(now) = now.filter(|now| *now != member.address) {
            let offset = now.port().wrapping_sub(set.switches[0].port());
            bail!(
                "the store in {} was begun with --listen 127.0.0.1:{}: give it that port again, or begin a new one in another directory \
                 (--data)",
                data.path().display(),
                member.address.port().wrapping_sub(offset)
            );
        }
    }
    Ok(())
}

fn greeting(running: &Running<StoreProgram>, set: &SetTable, data: &Data, gateway: Option<&Gateway>) -> String {
    let port = running.switch.local_addr().port();
    let of_store = if port == DEFAULT_PORT { String::new() } else { format!(" --switch 127.0.0.1:{port}") };
    let status = running.http().map_or_else(String::new, |http| format!("  midflight status --http {http}\n"));
    let redis = gateway.map_or_else(String::new, |gateway| {
        let at = gateway.local_addr();
        let port = if at == GATEWAY { String::new() } else { format!(" -p {}", at.port()) };
        format!("  redis-cli{port} get greeting\n")
    });
    let fate = if data.is_temporary() { "which goes at the end" } else { "which stays" };
    let replicas = if let [_] = set.replicas[..] {
        "1 replica with its".into()
    } else {
        format!("{} replicas with their", set.replicas.len())
    };
    format!(
        "switch on 127.0.0.1:{port}, {replicas} data in {}, {fate}; reads: {}. In another terminal:\n\n  \
         midflight store put greeting hello{of_store}\n  midflight store get greeting{of_store}\n{redis}{status}\nCtrl-C ends it.\n",
        data.path().display(),
        set.reads.name()
    )
}
