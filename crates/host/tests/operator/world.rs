//! A small network on loopback: operators as in production, fast or slow servers, and a client. Each rack has its own addresses, by which
//! operators recognize hosts.

use midflight_cache::client::{Answer, Client, ClientConfig, Event, Failure, Read};
use midflight_cache::control::network::{HostAt, OperatorAt, ReplicaGroup, ServerAt};
use midflight_cache::control::{ControllerConfig, Network, NetworkParts, Start};
use midflight_cache::server::{self, Server, ServerConfig};
use midflight_dataplane::cache::{CacheConfig, CacheProgram, Selection};
use midflight_endpoint::{Endpoint, MS};
use midflight_host::cache::control_stream::Secret;
use midflight_host::cache::control_stream::secret::{self, End, GREETING_BYTES, Opener, PROOF_BYTES, Sealer, greeting};
use midflight_host::cache::controller::{ControllerOptions, ControllerProcess};
use midflight_host::cache::operator::{
    BoundKeeper, BoundSelector, Keeper, KeeperOptions, SelectedBy, Selector, SelectorOptions,
};
use midflight_host::clock;
use midflight_host::{Switch, SwitchBuilder};
use midflight_placement::{Accelerator, Options, Use, input};
use midflight_wire::cache::{NetrsResponse, Packet, ServerStatus, parse};
use std::collections::BTreeSet;
use std::io::{Read as _, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) const GROUP: u32 = 7;
/// Longest wait; test machines are slow.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// The client is in `rack-0`, the servers in `rack-1`; both below `core-0`.
const TOPOLOGY: &str = r#"
core = ["core-0"]
racks = [
  { id = "rack-0", tor = "tor-0", hosts = ["client-0"] },
  { id = "rack-1", tor = "tor-1", hosts = ["backend-0"] },
]
"#;
pub(crate) const CLIENT: [u8; 4] = [127, 60, 0, 10];
const BACKEND: [u8; 4] = [127, 60, 1, 10];

pub(crate) fn secret() -> Secret {
    Secret::new([7; 32])
}

/// The handshake of a stream, as in production.
pub(crate) fn greet(stream: &mut TcpStream, secret: &Secret, end: End) -> std::io::Result<(Sealer, Opener)> {
    stream.write_all(&greeting(5))?;
    let mut others = [0; GREETING_BYTES];
    stream.read_exact(&mut others)?;
    let (mut sealer, mut opener) = secret::begin(secret, end, 5, &others).unwrap();
    stream.write_all(&sealer.prove())?;
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof)?;
    opener.check_proof(&mut proof).map_err(std::io::Error::other)?;
    Ok((sealer, opener))
}

/// An operator with its selector and keeper. Dropping it kills it.
pub(crate) struct Operator {
    pub(crate) switch: Arc<Switch<CacheProgram>>,
    pub(crate) selector: Option<Arc<Selector>>,
    pub(crate) keeper: Keeper,
}

impl Operator {
    /// An operator at this address; port 0: free ports.
    pub(crate) fn start(
        network_masks: [u32; 4],
        at: SocketAddr,
        (has_selector, selection): (bool, Selection),
        controllers: &[IpAddr],
    ) -> Self {
        let program = CacheConfig { masks: network_masks, selection, ..CacheConfig::default() };
        let mut bound = SwitchBuilder::<CacheProgram>::of(program).listen(at).bind().unwrap();
        let address = bound.local_addr();
        let selector = has_selector.then(|| {
            let options = SelectorOptions::new(SocketAddr::new(at.ip(), 0), address);
            let (selector, diversion) = BoundSelector::bind(&options).unwrap();
            bound.divert(diversion);
            Arc::new(selector.run().unwrap())
        });
        let controllers: BTreeSet<IpAddr> = controllers.iter().copied().collect();
        let keeper =
            BoundKeeper::bind(KeeperOptions { listen: SocketAddr::new(at.ip(), 0), controllers, secret: secret() })
                .unwrap();
        let switch = Arc::new(bound.run(|| ()).unwrap());
        let selected_by = match &selector {
            Some(selector) => SelectedBy::Thread(Arc::clone(selector)),
            None if selection != Selection::None => SelectedBy::Core,
            None => SelectedBy::Nobody,
        };
        let keeper = keeper.serve(&switch, selected_by, || ()).unwrap();
        Self { switch, selector, keeper }
    }
}

/// A server. Dropping it stops it.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    pub(crate) served: Arc<AtomicU64>,
    /// Sends impossible statuses, and each answer twice.
    pub(crate) lies: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Backend {
    /// A server that echoes a request after `takes`.
    pub(crate) fn start(operator: SocketAddr, takes: Duration) -> Self {
        let socket = UdpSocket::bind(SocketAddr::new(IpAddr::from(BACKEND), 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let lies = Arc::new(AtomicBool::new(false));
        let (stops, counts, is_lying) = (Arc::clone(&stop), Arc::clone(&served), Arc::clone(&lies));
        let mut server = Server::new(ServerConfig::new(address, operator, 1)).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut packet, mut due) = ([0; 2048], Vec::new(), Vec::new());
            while !stops.load(Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    server.handle(clock::now(), from, &buffer[..length]);
                }
                let now = clock::now();
                server.handle_timeout(now);
                while let Some(event) = server.poll_event() {
                    if let server::Event::Serve { key, asked, .. } = event {
                        due.push((now + clock::nanos(takes), key, asked));
                    }
                }
                due.retain(|(at, key, asked)| {
                    let is_due = *at <= now;
                    if is_due {
                        counts.fetch_add(1, Relaxed);
                        server.answer(now, *key, asked).unwrap();
                    }
                    !is_due
                });
                while let Some(to) = server.poll_transmit(now, &mut packet) {
                    if is_lying.load(Relaxed) && forge_status(&mut packet) {
                        socket.send_to(&packet, to).unwrap();
                    }
                    socket.send_to(&packet, to).unwrap();
                }
            }
        });
        Self { address, served, lies, stop, thread: Some(thread) }
    }
}

fn forge_status(packet: &mut [u8]) -> bool {
    let is_answer =
        matches!(parse(packet), Ok(Packet::Response(_, _, status, ..)) if status.len() == size_of::<ServerStatus>());
    if is_answer {
        packet[size_of::<NetrsResponse>()..][..size_of::<ServerStatus>()].fill(0xff);
    }
    is_answer
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

pub(crate) struct World {
    /// `tor-0`, `tor-1`, `core-0`; `None` once killed.
    pub(crate) operators: [Option<Operator>; 3],
    pub(crate) backends: Vec<Backend>,
    pub(crate) network: Arc<Network>,
    control: Vec<SocketAddr>,
}

pub(crate) const NAMES: [&str; 3] = ["tor-0", "tor-1", "core-0"];

impl World {
    /// Three fast servers; selectors at `tor-0` and `core-0`.
    pub(crate) fn new() -> Self {
        Self::with(Selection::None)
    }

    /// The same, with selection in these operators' cores.
    pub(crate) fn with(selection: Selection) -> Self {
        let at = [[127, 60, 0, 1], [127, 60, 1, 1], [127, 60, 2, 1]].map(|ip| SocketAddr::from((ip, 0)));
        let masks = network(&[at[0]; 3], &[None; 3], &[]).masks();
        let has_selector = [true, false, true].map(|selects| (selects && selection == Selection::None, selects));
        let controllers = [IpAddr::from([127, 0, 0, 1])];
        let operators: [_; 3] = std::array::from_fn(|n| {
            let (has_thread, selects) = has_selector[n];
            let selection = if selects { selection } else { Selection::None };
            Some(Operator::start(masks, at[n], (has_thread, selection), &controllers))
        });
        let of =
            |what: fn(&Operator) -> SocketAddr| operators.each_ref().map(|operator| what(operator.as_ref().unwrap()));
        let addresses = of(|operator| operator.switch.local_addr());
        let of_core = |n: usize| SocketAddr::new(at[n].ip(), 9);
        let selectors: [_; 3] = std::array::from_fn(|n| {
            let thread = operators[n].as_ref()?.selector.as_ref().map(|selector| selector.local_addr());
            // Controllers need an address for every selection.
            thread.or_else(|| has_selector[n].1.then(|| of_core(n)))
        });
        let backends: Vec<Backend> = (0..3).map(|_| Backend::start(addresses[1], Duration::ZERO)).collect();
        let servers: Vec<SocketAddr> = backends.iter().map(|backend| backend.address).collect();
        let network = Arc::new(network(&addresses, &selectors, &servers));
        let control = of(|operator| operator.keeper.local_addr());
        let order =
            network.topology().operators().iter().map(|operator| NAMES.iter().position(|name| *name == operator.id));
        let control = order.map(|place| control[place.unwrap()]).collect();
        Self { operators, backends, network, control }
    }

    /// A controller that begins with every group at its rack's operator.
    pub(crate) fn controller(&self, change: impl FnOnce(&mut ControllerConfig)) -> ControllerProcess {
        self.controller_with(secret(), change)
    }

    pub(crate) fn controller_with(
        &self,
        secret: Secret,
        change: impl FnOnce(&mut ControllerConfig),
    ) -> ControllerProcess {
        let mut config = ControllerConfig {
            ask_every: 20 * MS,
            // Test machines pause for longer than those of clusters.
            dead_after: 1_000 * MS,
            takeover_after: 100 * MS,
            repeat_after: 100 * MS,
            longest_response: 200 * MS,
            start: Start::OwnRack,
            ..ControllerConfig::default()
        };
        change(&mut config);
        let planner = Options { methods: Use::FirstFit, ..Options::default() };
        let (network, control) = (Arc::clone(&self.network), self.control.clone());
        let source = Some([127, 0, 0, 1].into());
        ControllerProcess::start(ControllerOptions { network, control, source, secret, config, planner }, || ())
            .unwrap()
    }

    /// Redirects orders for this operator.
    pub(crate) fn redirect(&mut self, name: &str, to: SocketAddr) {
        let place = self.network.topology().operator(name).unwrap();
        self.control[place] = to;
    }

    pub(crate) fn operator(&self, name: &str) -> &Operator {
        let place = NAMES.iter().position(|other| *other == name).unwrap();
        self.operators[place].as_ref().unwrap()
    }

    pub(crate) fn selected(&self, name: &str) -> u64 {
        self.operator(name).selector.as_ref().unwrap().report().rsnode.selected
    }

    pub(crate) fn client(&self) -> Reader {
        let servers = self.backends.iter().map(|backend| backend.address).collect();
        Reader::new(self.operator("tor-0").switch.local_addr(), servers)
    }
}

fn network(addresses: &[SocketAddr; 3], selectors: &[Option<SocketAddr>; 3], servers: &[SocketAddr]) -> Network {
    let topology = input::topology(TOPOLOGY, &Accelerator::paper("default".into())).unwrap();
    let operators = (0..3).map(|n| OperatorAt {
        switch: NAMES[n].into(),
        // The masks follow from the topology; the addresses do not matter yet.
        address: if addresses[n].port() == 0 { ([127, 60, 3, 1], 1 + n as u16).into() } else { addresses[n] },
        selector: selectors[n],
    });
    let servers_at = servers.iter().map(|&address| ServerAt { at: "rack-1".into(), address });
    let group = ReplicaGroup { id: GROUP, servers: servers.to_vec() };
    Network::new(NetworkParts {
        topology,
        operators: operators.collect(),
        hosts: vec![HostAt { host: "client-0".into(), ip: CLIENT.into() }],
        servers: servers_at.collect(),
        replica_groups: if servers.is_empty() { Vec::new() } else { vec![group] },
        ..NetworkParts::default()
    })
    .unwrap()
}

/// A client that reads sequentially or in bulk.
pub(crate) struct Reader {
    client: Client,
    operator: SocketAddr,
    socket: UdpSocket,
    servers: Vec<SocketAddr>,
}

impl Reader {
    fn new(operator: SocketAddr, servers: Vec<SocketAddr>) -> Self {
        let socket = UdpSocket::bind(SocketAddr::new(IpAddr::from(CLIENT), 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let client = Client::new(ClientConfig::new(rand::random()), operator).unwrap();
        Self { client, operator, socket, servers }
    }

    /// The packet of a read for which no caller waits.
    pub(crate) fn packet(&mut self) -> Vec<u8> {
        let read = Read { group: GROUP, backups: self.servers.clone(), asked: b"question".to_vec() };
        self.client.submit(clock::now(), read).unwrap();
        let mut packet = Vec::new();
        self.client.poll_transmit(clock::now(), &mut packet).unwrap();
        packet
    }

    /// Sends a packet `times` times, slowly enough for the operator.
    pub(crate) fn send(&self, packet: &[u8], times: usize) {
        for sent in 0..times {
            self.socket.send_to(packet, self.operator).unwrap();
            if sent % 32 == 31 {
                std::thread::sleep(Duration::from_micros(500));
            }
        }
    }

    pub(crate) fn read(&mut self, count: usize) -> Vec<Result<Answer, Failure>> {
        for n in 0..count {
            let asked = format!("question {n}").into_bytes();
            let read = Read { group: GROUP, backups: self.servers.clone(), asked };
            self.client.submit(clock::now(), read).unwrap();
        }
        let (mut outcomes, mut buffer, mut packet) = (Vec::new(), [0; 2048], Vec::new());
        let end = Instant::now() + LONG;
        while outcomes.len() < count {
            assert!(
                Instant::now() < end,
                "{} of {count} reads have ended: {:?}",
                outcomes.len(),
                self.client.counters()
            );
            let now = clock::now();
            if self.client.poll_timeout().is_some_and(|due| due <= now) {
                self.client.handle_timeout(now);
            }
            while let Some(to) = self.client.poll_transmit(now, &mut packet) {
                self.socket.send_to(&packet, to).unwrap();
            }
            if let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
                self.client.handle(clock::now(), from, &buffer[..length]);
            }
            while let Some(event) = self.client.poll_event() {
                if let Event::Done { outcome, .. } = event {
                    outcomes.push(outcome);
                }
            }
        }
        outcomes
    }
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
