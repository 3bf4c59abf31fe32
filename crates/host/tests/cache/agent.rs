//! An agent whose behaviour a test controls.

use midflight_cache::server::{Event, Server, ServerConfig};
use midflight_endpoint::Endpoint;
use midflight_host::clock;
use midflight_wire::cache::backend::{BackendAnswer, BackendRequest, parse_request, write_answer};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer values do not fit into a datagram.
pub(super) const DATAGRAM_VALUE_MAX: usize = 1_000;
const TURN: Duration = Duration::from_millis(2);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Answers {
    #[default]
    Right,
    /// Always these bytes.
    Bytes(Vec<u8>),
    RefusesSets,
    /// Over TCP: never answers.
    Stalls,
    /// Over TCP: closes the connection.
    Closes,
}

/// Value, flags and expiry in seconds.
pub(super) type Kept = (Vec<u8>, u32, u32);

#[derive(Default)]
pub(super) struct Shared {
    pub(super) backend: Mutex<BTreeMap<Vec<u8>, Kept>>,
    pub(super) by_datagram: Mutex<Answers>,
    pub(super) by_stream: Mutex<Answers>,
    /// Gets by datagram.
    pub(super) asked: AtomicUsize,
    /// Closes connections after this answer.
    pub(super) closes_when_idle: AtomicBool,
    stop: AtomicBool,
}

pub(super) struct Agent {
    pub(super) address: SocketAddr,
    pub(super) shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Agent {
    /// UDP and TCP share a port. `operator`: destination of answers to requests that are not direct.
    pub(super) fn start(operator: SocketAddr) -> Self {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
                break (udp, tcp);
            }
        };
        let address = udp.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (of_udp, of_tcp) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads = vec![
            std::thread::spawn(move || of_udp.serve_datagrams(&udp, operator)),
            std::thread::spawn(move || of_tcp.accept(&tcp)),
        ];
        Self { address, shared, threads }
    }

    pub(super) fn backend(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Kept>> {
        self.shared.backend.lock().unwrap()
    }

    pub(super) fn by_datagram(&self, answers: Answers) {
        *self.shared.by_datagram.lock().unwrap() = answers;
    }

    pub(super) fn by_stream(&self, answers: Answers) {
        *self.shared.by_stream.lock().unwrap() = answers;
    }

    pub(super) fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

impl Shared {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn serve_datagrams(&self, udp: &UdpSocket, operator: SocketAddr) {
        let address = udp.local_addr().unwrap();
        let mut server = Server::new(ServerConfig::new(address, operator, rand::random())).unwrap();
        udp.set_read_timeout(Some(TURN)).unwrap();
        let (mut buffer, mut packet) = ([0; 2_048], Vec::new());
        while !self.stops() {
            let now = clock::now();
            match udp.recv_from(&mut buffer) {
                Ok((length, from)) => server.handle(now, from, &buffer[..length]),
                Err(_) => server.handle_timeout(now),
            }
            while let Some(event) = server.poll_event() {
                let Event::Serve { key, asked, .. } = event else { continue };
                self.asked.fetch_add(1, Ordering::Relaxed);
                let answer = match &*self.by_datagram.lock().unwrap() {
                    Answers::Bytes(bytes) => bytes.clone(),
                    _ => self.answer(&asked, true).unwrap().0,
                };
                server.answer(now, key, &answer).unwrap();
            }
            while let Some(to) = server.poll_transmit(now, &mut packet) {
                udp.send_to(&packet, to).unwrap();
            }
        }
    }

    fn accept(self: &Arc<Self>, tcp: &TcpListener) {
        tcp.set_nonblocking(true).unwrap();
        let mut threads = Vec::new();
        while !self.stops() {
            match tcp.accept() {
                Ok((stream, _)) => {
                    let of_thread = Arc::clone(self);
                    threads.push(std::thread::spawn(move || of_thread.serve_stream(stream)));
                }
                Err(_) => std::thread::sleep(TURN),
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    fn serve_stream(&self, mut stream: TcpStream) {
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(TURN)).unwrap();
        let (mut came, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while !self.stops() {
            match stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => came.extend_from_slice(&buffer[..count]),
                Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => continue,
                Err(_) => return,
            }
            let answers = self.by_stream.lock().unwrap().clone();
            let answer = match answers {
                Answers::Closes => return,
                Answers::Stalls => continue,
                Answers::Bytes(bytes) => {
                    came.clear();
                    bytes
                }
                Answers::RefusesSets if is_set(&came) => {
                    let Some(length) = parse_request(&came).unwrap().map(|(_, length)| length) else { continue };
                    came.drain(..length);
                    bytes_of(&BackendAnswer::Refused { why: "the backend is full" })
                }
                Answers::Right | Answers::RefusesSets => {
                    let Some((answer, length)) = self.answer(&came, false) else { continue };
                    came.drain(..length);
                    answer
                }
            };
            if stream.write_all(&answer).is_err() || self.closes_when_idle.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// The answer to the first request and that request's length; `None` if it is incomplete.
    fn answer(&self, asked: &[u8], by_datagram: bool) -> Option<(Vec<u8>, usize)> {
        let (request, length) = parse_request(asked).unwrap()?;
        let mut backend = self.backend.lock().unwrap();
        let answer = match request {
            BackendRequest::Get { key } => match backend.get(key) {
                None => bytes_of(&BackendAnswer::Missing),
                Some((value, ..)) if by_datagram && value.len() > DATAGRAM_VALUE_MAX => {
                    bytes_of(&BackendAnswer::Long { length: value.len() as u32 })
                }
                Some((value, flags, _)) => bytes_of(&BackendAnswer::Value { value, flags: *flags }),
            },
            BackendRequest::Set { key, value, flags, expires_s } => {
                backend.insert(key.to_vec(), (value.to_vec(), flags, expires_s));
                bytes_of(&BackendAnswer::Done)
            }
            BackendRequest::Delete { key } => match backend.remove(key) {
                Some(_) => bytes_of(&BackendAnswer::Done),
                None => bytes_of(&BackendAnswer::Missing),
            },
        };
        Some((answer, length))
    }
}

fn is_set(bytes: &[u8]) -> bool {
    bytes.get(5) == Some(&2)
}

pub(super) fn bytes_of(answer: &BackendAnswer<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_answer(answer, &mut bytes);
    bytes
}
