//! Blobs over loopback. Each source is an address of 127.0.0.0/8.

mod proofs;

use super::fetch::FetchError;
use super::format::{Answer, Greeting, Request, STATUS_OK};
use super::*;
use midflight_connections::testing::{PATIENCE, connect};
use midflight_tasks::blob::{Asked, BlobSecret, Ends};
use midflight_wire::tasks::{BlobRef, RESULT_BLOB_MAX};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::{FromZeros, IntoBytes};

/// A limit for tests that wait for it.
const SOON: Duration = Duration::from_millis(50);

/// More than the buffers of a connection hold.
const LARGE: usize = 64 << 20;

/// Limits so long that no connection is closed by them.
fn patient() -> BlobOptions {
    let [request_timeout, idle_timeout, progress_timeout] = [PATIENCE; 3];
    BlobOptions { request_timeout, idle_timeout, progress_timeout, ..BlobOptions::default() }
}

fn serve(options: BlobOptions) -> (Arc<BlobStore>, BlobServer, SocketAddr) {
    let store = BlobStore::new(options);
    let server = BlobServer::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&store), false).unwrap();
    let address = ([127, 0, 0, 1], server.port()).into();
    (store, server, address)
}

const NOT_HERE: &[u8] = b"MB\x03\x01\0\0\0\0\0\0\0\0\0\0\0\0";
const NO_PLACE: &[u8] = b"MB\x03\x01\0\0\0\0\0\0\0\0\0\0\0\0";

/// A greeted connection.
struct Open {
    stream: TcpStream,
    challenge: u64,
    requests: u64,
}

fn open(source: u8, address: SocketAddr) -> Open {
    let (mut stream, mut greeting) = (connect(source, address), Greeting::new_zeroed());
    stream.read_exact(greeting.as_mut_bytes()).unwrap();
    assert!(greeting.start.is_ours() && greeting.start.code == STATUS_OK, "{greeting:?}");
    Open { stream, challenge: greeting.challenge.get(), requests: 0 }
}

/// The ends of a connection, seen from the client.
fn ends_of_client(stream: &TcpStream) -> Ends {
    Ends { server: stream.peer_addr().unwrap(), client: stream.local_addr().unwrap() }
}

/// Accepts and greets a connection, and reads its first request.
fn accept(listener: &TcpListener) -> (TcpStream, Request) {
    let ((mut stream, _), mut request) = (listener.accept().unwrap(), Request::new_zeroed());
    stream.write_all(Greeting::welcome(5).as_bytes()).unwrap();
    stream.read_exact(request.as_mut_bytes()).unwrap();
    (stream, request)
}

/// The answer of a server that knows this id.
fn answer_to(stream: &TcpStream, request: &Request, id: u64, length: u32) -> Answer {
    let ends = Ends { server: stream.local_addr().unwrap(), client: stream.peer_addr().unwrap() };
    Answer::here(length, BlobSecret::new(id).answer_proof(request.nonce.get(), ends, length))
}

impl Open {
    fn request(&mut self, id: u64) -> Vec<u8> {
        let (ends, challenge, earlier) = (ends_of_client(&self.stream), self.challenge, self.requests);
        self.requests += 1;
        Request::new(BlobSecret::new(id), &Asked { ends, challenge, earlier, nonce: 99 }).as_bytes().to_vec()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends a request; whether an answer begins.
    fn begins(&mut self, reference: &BlobRef) -> bool {
        let request = self.request(reference.id.get());
        let mut answer = [0; size_of::<Answer>()];
        self.stream.write_all(&request).is_ok() && self.stream.read_exact(&mut answer).is_ok()
    }

    /// Sends a request; whether the whole answer arrives.
    fn is_answered(&mut self, reference: &BlobRef) -> bool {
        let request = self.request(reference.id.get());
        let mut answer = vec![0; size_of::<Answer>() + reference.length.get() as usize];
        self.stream.write_all(&request).is_ok() && self.stream.read_exact(&mut answer).is_ok()
    }
}

/// Whether the connection was closed after nothing but `last`.
fn ends_with(mut stream: &TcpStream, last: &[u8]) -> bool {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).is_ok() && bytes == last
}

#[test]
fn blobs_are_fetched_until_their_lease_ends() {
    let (store, server, address) = serve(BlobOptions::default());
    let fetcher = Fetcher::new(PATIENCE);
    for size in [0, 1, 17, 70_000, LARGE] {
        let bytes: Vec<u8> = (0..size).map(|i| (i / 251) as u8).collect();
        let lease = store.keep(Arc::new(bytes.clone()), Duration::ZERO).unwrap();
        let reference = lease.reference(server.port());
        assert!(fetcher.fetch(address.ip(), &reference, RESULT_BLOB_MAX).unwrap() == bytes, "{size} bytes");
        drop(lease);
        assert!(matches!(fetcher.fetch(address.ip(), &reference, RESULT_BLOB_MAX), Err(FetchError::Gone)));
    }
    let counters = store.counters();
    // A missing blob is requested twice: on the kept connection and on a new one.
    assert_eq!((counters.served, counters.unknown, counters.kept, counters.kept_bytes), (5, 10, 0, 0));
}

#[test]
fn t11_a_malformed_request_ends_the_connection_and_is_counted() {
    let (store, _server, address) = serve(patient());
    for wrong in ["GET / HTTP/1.1\r\n", "MB\x02\x01", "MB\x03\x02"] {
        let mut open = open(1, address);
        open.write(format!("{wrong:.<32}").as_bytes());
        assert!(ends_with(&open.stream, b""));
    }
    assert_eq!(store.counters().malformed, 3);
}

#[test]
fn t11_an_unknown_name_ends_the_connection_and_is_counted() {
    let (store, _server, address) = serve(patient());
    let mut open = open(1, address);
    let request = open.request(7);
    open.write(&request);
    assert!(ends_with(&open.stream, NOT_HERE));
    assert_eq!((store.counters().unknown, store.counters().served), (1, 0));
}

#[test]
fn t11_a_request_that_does_not_end_is_late() {
    let (store, _server, address) = serve(BlobOptions { request_timeout: SOON, ..patient() });
    let mut open = open(1, address);
    let request = open.request(7);
    open.write(&request[..31]);
    assert!(ends_with(&open.stream, b""));
    assert_eq!(store.counters().late, 1);
}

#[test]
fn t14_640_idle_connections_of_one_source_keep_no_other_out() {
    let (store, server, address) = serve(patient());
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let idle: Vec<_> = (0..640).map(|_| connect(2, address)).collect();
    let fetched = Fetcher::new(PATIENCE).fetch(address.ip(), &lease.reference(server.port()), RESULT_BLOB_MAX);
    assert_eq!(fetched.unwrap(), [1; 100]);
    let counters = store.counters();
    assert_eq!((counters.refused, counters.made_room), (0, 640 - 456), "the first of them have made room for the last");
    drop(idle);
}

#[test]
fn t14_640_idle_connections_of_many_sources_make_room() {
    let (store, server, address) = serve(patient());
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let _idle: Vec<_> = (0..640).map(|n| connect(2 + (n % 128) as u8, address)).collect();
    let fetched = Fetcher::new(PATIENCE).fetch(address.ip(), &lease.reference(server.port()), RESULT_BLOB_MAX);
    assert_eq!(fetched.unwrap(), [1; 100]);
    let counters = store.counters();
    assert_eq!((counters.refused, counters.made_room), (0, 640 + 1 - 512));
}

#[test]
fn t14_the_idlest_makes_room() {
    let (store, server, address) = serve(BlobOptions { max_connections: 3, ..patient() });
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let reference = lease.reference(server.port());
    let mut connections = [2, 3, 4].map(|source| open(source, address));
    assert!([0, 2, 1, 0].iter().all(|&n| connections[n].is_answered(&reference)));
    assert!(open(5, address).is_answered(&reference));
    assert!(ends_with(&connections[2].stream, b""));
    assert!(connections[0].is_answered(&reference) && connections[1].is_answered(&reference));
    assert_eq!((store.counters().made_room, store.counters().refused), (1, 0));
}

#[test]
fn t14_a_table_of_8_is_one_sources_if_it_wants_it() {
    let (store, server, address) = serve(BlobOptions { max_connections: 8, ..patient() });
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let mut connections: Vec<_> = (0..8).map(|_| open(1, address)).collect();
    assert!(connections.iter_mut().all(|open| open.is_answered(&lease.reference(server.port()))));
    assert_eq!((store.counters().refused, store.counters().made_room), (0, 0));
}

#[test]
fn t14_who_has_been_answered_and_asks_for_nothing_more_holds_no_place_against_its_address() {
    let (store, server, address) = serve(BlobOptions { max_connections: 9, ..patient() });
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let reference = lease.reference(server.port());
    let mut own: Vec<_> = (0..8).map(|_| open(1, address)).collect();
    assert!(own.iter_mut().all(|open| open.is_answered(&reference)));
    let mut ninth = open(1, address);
    assert!(ninth.is_answered(&reference));
    assert!(ends_with(&own[0].stream, b"") && own[1].is_answered(&reference));
    let fetched = Fetcher::new(PATIENCE).fetch(address.ip(), &reference, RESULT_BLOB_MAX);
    assert_eq!(fetched.unwrap(), vec![1; 100]);
    assert!(ends_with(&own[2].stream, b"") && ninth.is_answered(&reference));
    assert_eq!((store.counters().refused, store.counters().made_room), (0, 2));
}

#[test]
fn t14_a_fetch_waits_for_a_place() {
    let (store, server, address) = serve(BlobOptions { max_connections: 9, ..patient() });
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let fetch = |patience| Fetcher::new(patience).fetch(address.ip(), &lease.reference(server.port()), RESULT_BLOB_MAX);
    let large = store.keep(Arc::new(vec![2; LARGE]), Duration::ZERO).unwrap();
    let mut own: Vec<_> = (0..8).map(|_| open(1, address)).collect();
    assert!(own.iter_mut().all(|open| open.begins(&large.reference(server.port()))));
    assert!(ends_with(&connect(1, address), NO_PLACE), "those that are being served stay");
    assert!(matches!(fetch(SOON), Err(FetchError::NoPlace(_))));
    let before = store.counters().refused;
    let fetched = std::thread::scope(|scope| {
        let fetch = scope.spawn(|| fetch(PATIENCE));
        while store.counters().refused == before {
            std::thread::yield_now();
        }
        drop(own);
        fetch.join().unwrap()
    });
    assert_eq!(fetched.unwrap(), [1; 100]);
}

#[test]
fn t14_a_connection_that_says_nothing_is_closed() {
    let (store, _server, address) = serve(BlobOptions { request_timeout: SOON, ..patient() });
    assert!(ends_with(&open(1, address).stream, b""));
    assert_eq!((store.counters().silent, store.counters().idle), (1, 0));
}

#[test]
fn a_connection_that_asks_no_more_is_closed_and_the_next_fetch_takes_a_new_one() {
    let (store, server, address) = serve(BlobOptions { idle_timeout: SOON, ..patient() });
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let fetcher = Fetcher::new(PATIENCE);
    for closed in 1..4 {
        assert_eq!(fetcher.fetch(address.ip(), &lease.reference(server.port()), RESULT_BLOB_MAX).unwrap(), [1; 100]);
        while store.counters().idle < closed {
            std::thread::yield_now();
        }
    }
    assert_eq!(store.counters().silent, 0);
}

#[test]
fn t14_a_request_that_trickles_in_is_closed() {
    let (store, _server, address) = serve(BlobOptions { request_timeout: SOON, ..patient() });
    let mut open = open(1, address);
    // Omits the last byte, so that the request never ends, however slowly the server reads.
    for &byte in &open.request(7)[..31] {
        if open.stream.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(SOON / 10);
    }
    assert!(ends_with(&open.stream, b""));
    assert_eq!((store.counters().late, store.counters().unknown), (1, 0));
}

/// The server's ends of connections, from the kernel's table.
fn in_the_kernel(port: u16) -> usize {
    let (local, listening) = (format!("0100007F:{port:04X}"), "0A");
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let columns = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    columns.filter(|column| column[1] == local && column[3] != listening).count()
}

#[test]
fn t14_an_answer_that_is_not_read_is_closed_and_leaves_nothing_in_the_kernel() {
    let (store, server, address) = serve(BlobOptions { progress_timeout: SOON, ..patient() });
    let lease = store.keep(Arc::new(vec![1; LARGE]), Duration::ZERO).unwrap();
    let mut open = open(1, address);
    let request = open.request(lease.reference(server.port()).id.get());
    open.write(&request);
    while store.counters().stalled == 0 {
        std::thread::yield_now();
    }
    assert_eq!(store.counters().broken, 0);
    let deadline = Instant::now() + PATIENCE;
    while in_the_kernel(server.port()) > 0 {
        assert!(Instant::now() < deadline, "megabytes are kept for who does not read them");
        std::thread::sleep(SOON);
    }
}

#[test]
fn a_request_or_an_answer_that_breaks_off_is_counted() {
    let (store, server, address) = serve(patient());
    let lease = store.keep(Arc::new(vec![1; LARGE]), Duration::ZERO).unwrap();
    let id = lease.reference(server.port()).id.get();
    for length in [31, 32] {
        let mut open = open(1, address);
        let request = open.request(id);
        open.write(&request[..length]);
    }
    drop(open(1, address));
    while store.counters().broken < 2 || store.counters().connections > 0 {
        std::thread::yield_now();
    }
    assert_eq!(store.counters().broken, 2);
}

#[test]
fn a_fetch_from_who_answers_byte_by_byte_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reference = BlobRef { id: 7.into(), length: 1_000_000.into(), port: port.into(), reserved: 0.into() };
    std::thread::spawn(move || {
        let (mut stream, request) = accept(&listener);
        stream.write_all(answer_to(&stream, &request, 7, 1_000_000).as_bytes()).unwrap();
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(SOON / 10);
        }
    });
    let fetched = Fetcher::new(SOON).fetch([127, 0, 0, 1].into(), &reference, RESULT_BLOB_MAX);
    assert!(matches!(fetched, Err(FetchError::Io { .. })), "{fetched:?}");
}

#[test]
fn a_server_of_another_version_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reference = BlobRef { id: 7.into(), length: 4.into(), port: port.into(), reserved: 0.into() };
    std::thread::scope(|scope| {
        scope.spawn(|| listener.accept().unwrap().0.write_all(b"MB\x04\0............").unwrap());
        let error = Fetcher::new(PATIENCE).fetch([127, 0, 0, 1].into(), &reference, RESULT_BLOB_MAX).unwrap_err();
        assert!(error.to_string().contains("of this version"), "{error}");
    });
}

#[test]
fn a_fetch_from_who_says_nothing_says_that_it_timed_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reference = BlobRef { id: 7.into(), length: 1.into(), port: port.into(), reserved: 0.into() };
    let error = Fetcher::new(SOON).fetch([127, 0, 0, 1].into(), &reference, RESULT_BLOB_MAX).unwrap_err().to_string();
    assert!(error.contains("timed out"), "{error}");
}

#[test]
fn a_reference_of_another_length_is_refused() {
    let (store, server, address) = serve(BlobOptions::default());
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let mut reference = lease.reference(server.port());
    for length in [99, 101, RESULT_BLOB_MAX] {
        reference.length = length.into();
        assert!(matches!(
            Fetcher::new(PATIENCE).fetch(address.ip(), &reference, RESULT_BLOB_MAX),
            Err(FetchError::Length { .. })
        ));
    }
}

#[test]
fn times_without_end_are_times_like_others() {
    let [request_timeout, idle_timeout, progress_timeout] = [Duration::MAX; 3];
    let endless = BlobOptions { request_timeout, idle_timeout, progress_timeout, ..BlobOptions::default() };
    let (store, server, address) = serve(endless);
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let fetcher = Fetcher::new(store.options().progress_timeout);
    for _ in 0..2 {
        assert_eq!(fetcher.fetch(address.ip(), &lease.reference(server.port()), RESULT_BLOB_MAX).unwrap(), [1; 100]);
    }
}

#[test]
fn the_store_is_bounded_and_gives_room_back() {
    let (store, _server, _) = serve(BlobOptions { max_bytes: 100, ..BlobOptions::default() });
    let lease = store.keep(Arc::new(vec![0; 80]), Duration::ZERO).unwrap();
    assert!(store.keep(Arc::new(vec![0; 21]), Duration::from_millis(5)).is_err());
    let waits = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| store.keep(Arc::new(vec![0; 21]), Duration::from_secs(5)).is_ok());
        drop(lease);
        waiter.join().unwrap()
    });
    assert!(waits);
}

#[test]
fn what_nobody_fetches_expires() {
    let (store, _server, _) = serve(BlobOptions { result_ttl: Duration::ZERO, ..BlobOptions::default() });
    let lease = store.keep(Arc::new(vec![0; 80]), Duration::ZERO).unwrap();
    store.expire();
    assert_eq!((store.counters().expired, store.counters().kept_bytes), (1, 0));
    drop(lease);
    assert_eq!(store.counters().kept_bytes, 0);
}

#[test]
fn pieces_in_files_are_served_and_fetched_into_files() {
    let (store, server, address) = serve(BlobOptions { max_bytes: 100, max_file_bytes: 3_000_000, ..patient() });
    let bytes: Vec<u8> = (0..1_000_000u32).map(|i| (i / 251) as u8).collect();
    let mut file = store.files().file().unwrap();
    file.append(&bytes).unwrap();
    let [first, last] = [b"head", b"tail"].map(|text| Piece::Memory(Arc::new(text.to_vec())));
    let lease = store.keep(vec![first, Piece::File(file), last], Duration::ZERO).unwrap();
    assert_eq!((store.counters().kept_bytes, store.counters().file_bytes), (8, 1_000_000));
    let all = [b"head", &bytes[..], b"tail"].concat();
    let (fetcher, reference) = (Fetcher::new(PATIENCE), lease.reference(server.port()));
    assert!(fetcher.fetch(address.ip(), &reference, RESULT_BLOB_MAX).unwrap() == all);
    assert!(matches!(fetcher.fetch(address.ip(), &reference, 1_000_007), Err(FetchError::TooLarge { .. })));
    let fetch = || {
        let mut file = store.files().file().unwrap();
        fetcher.fetch_to_file(address.ip(), &reference, &mut file).map(|()| file)
    };
    let fetched = fetch().unwrap();
    let mut read = vec![0; all.len()];
    fetched.read_exact_at(&mut read, 0).unwrap();
    assert!(read == all);
    assert!(matches!(fetch(), Err(FetchError::NotKept { .. })), "a third million has no room");
    drop((lease, fetched));
    assert_eq!(store.counters().kept_bytes, 0);
    // The server reads the file until it notices that the last fetch was broken off.
    let deadline = Instant::now() + PATIENCE;
    while store.counters().file_bytes > 0 {
        assert!(Instant::now() < deadline, "{:?}", store.counters());
        std::thread::sleep(Duration::from_millis(1));
    }
}
