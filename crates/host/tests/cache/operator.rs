//! An operator with its selector: the C core and the endpoint, each with its own socket.

use midflight_cache::keyspace::Keyspace;
use midflight_cache::rsnode::{RsNode, RsNodeConfig};
use midflight_cache::select::Algorithm;
use midflight_dataplane::Out;
use midflight_dataplane::cache::{Cache, CacheConfig, Outcome, Rule};
use midflight_dataplane::program::Engine;
use midflight_endpoint::Endpoint;
use midflight_host::clock;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const TURN: Duration = Duration::from_millis(2);

/// Bound sockets, so that agents know the operator's address in advance.
pub(super) struct Place {
    operator: UdpSocket,
    selector: UdpSocket,
}

impl Place {
    pub(super) fn new() -> Self {
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(TURN)).unwrap();
            socket
        };
        Self { operator: bind(), selector: bind() }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.operator.local_addr().unwrap()
    }

    /// `keyspace`: of the selector. `is_degraded`: without selection.
    pub(super) fn start(self, keyspace: &Keyspace, servers: &[SocketAddr], is_degraded: bool) -> Operator {
        let (address, selector) = (self.address(), self.selector.local_addr().unwrap());
        let mut engine = Cache::new(&CacheConfig::default(), 1, rand::random()).unwrap();
        let mut rules = vec![
            Rule::Own { rack: Some(0), selector: Some(selector) },
            Rule::Rack { rack: 0, operator: Some(address), marker: 1 },
        ];
        rules.extend(servers.iter().map(|server| Rule::Server { address: *server, rack: 0 }));
        rules.push(Rule::Serve(1));
        rules.push(Rule::Group { group: 0, rsnode: (!is_degraded).then_some(1) });
        rules.push(Rule::Host { ip: [127, 0, 0, 1].into(), rack: 0, group: Some(0) });
        for rule in rules {
            assert_eq!(engine.set(rule), Outcome::Done, "{rule:?}");
        }
        let make = |servers| Algorithm::C3.selector(servers, 1);
        let mut rsnode = RsNode::new(RsNodeConfig::new(address), servers, rand::random(), make).unwrap();
        keyspace.groups().for_each(|(group, servers)| rsnode.set_group(group, servers).unwrap());

        let stop = Arc::new(AtomicBool::new(false));
        let (of_engine, of_selector) = (Arc::clone(&stop), Arc::clone(&stop));
        let threads = vec![
            std::thread::spawn(move || forward(engine, &self.operator, &of_engine)),
            std::thread::spawn(move || select(rsnode, &self.selector, &of_selector)),
        ];
        Operator { address, stop, threads }
    }
}

pub(super) struct Operator {
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

fn forward(mut engine: Cache, socket: &UdpSocket, stop: &AtomicBool) {
    let (mut buffer, mut out) = ([0; 2_048], Out::new());
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        engine.packet(clock::now(), from, &mut buffer[..length], &mut out).unwrap();
        for (to, bytes) in out.all(&buffer[..length]) {
            socket.send_to(bytes, to).unwrap();
        }
    }
}

fn select(mut rsnode: RsNode, socket: &UdpSocket, stop: &AtomicBool) {
    let (mut buffer, mut packet) = ([0; 2_048], Vec::new());
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => rsnode.handle(clock::now(), from, &buffer[..length]),
            Err(_) => rsnode.handle_timeout(clock::now()),
        }
        while let Some(to) = rsnode.poll_transmit(clock::now(), &mut packet) {
            socket.send_to(&packet, to).unwrap();
        }
    }
}
