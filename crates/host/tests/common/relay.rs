//! A faulty network: a relay with one address per endpoint. What Y sends to the relay's address of X reaches X from the relay's address of
//! Y. Endpoints know only relay addresses, so the relay can drop, duplicate or delay every datagram.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Probabilities per datagram.
#[derive(Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    /// Delayed by up to 2 ms, so that later ones overtake it.
    pub(crate) reordering: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) passed: u64,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
}

pub(crate) struct Relay {
    switch_address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Done>>,
}

impl Relay {
    pub(crate) fn start(switch: SocketAddr, faults: Faults, seed: u64) -> Self {
        let mut mesh = Mesh::new(faults, seed);
        mesh.socket_of(switch);
        let switch_address = mesh.sockets[0].local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                mesh.step();
            }
            mesh.done
        });
        Self { switch_address, stop, thread: Some(thread) }
    }

    pub(crate) fn switch_address(&self) -> SocketAddr {
        self.switch_address
    }

    pub(crate) fn stop(mut self) -> Done {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

struct Mesh {
    faults: Faults,
    random: StdRng,
    owners: Vec<SocketAddr>,
    sockets: Vec<UdpSocket>,
    known: HashMap<SocketAddr, usize>,
    held: Vec<(Instant, usize, SocketAddr, Vec<u8>)>,
    done: Done,
}

impl Mesh {
    fn new(faults: Faults, seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        let (owners, sockets, known, held) = Default::default();
        Self { faults, random, owners, sockets, known, held, done: Done::default() }
    }

    fn socket_of(&mut self, owner: SocketAddr) -> usize {
        *self.known.entry(owner).or_insert_with(|| {
            let socket = UdpSocket::bind(super::loopback()).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20);
            self.sockets.push(socket);
            self.owners.push(owner);
            self.sockets.len() - 1
        })
    }

    fn step(&mut self) {
        let mut fds: Vec<_> = self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 500_000 }));
        let ready: Vec<usize> = (0..fds.len()).filter(|&i| !fds[i].revents().is_empty()).collect();
        drop(fds);
        let mut buffer = [0; 2048];
        for to in ready {
            for _ in 0..256 {
                let Ok((length, from)) = self.sockets[to].recv_from(&mut buffer) else { break };
                let from = self.socket_of(from);
                self.pass(from, self.owners[to], &buffer[..length]);
            }
        }
        let now = Instant::now();
        for (_, from, to, datagram) in self.held.extract_if(.., |(due, ..)| *due <= now) {
            let _ = self.sockets[from].send_to(&datagram, to);
        }
    }

    fn pass(&mut self, from: usize, to: SocketAddr, datagram: &[u8]) {
        if self.random.random_bool(self.faults.loss) {
            self.done.lost += 1;
            return;
        }
        if self.random.random_bool(self.faults.reordering) {
            self.done.reordered += 1;
            let due = Instant::now() + Duration::from_micros(self.random.random_range(0..2000));
            self.held.push((due, from, to, datagram.to_vec()));
            return;
        }
        self.done.passed += 1;
        let _ = self.sockets[from].send_to(datagram, to);
        if self.random.random_bool(self.faults.duplication) {
            self.done.duplicated += 1;
            let _ = self.sockets[from].send_to(datagram, to);
        }
    }
}
