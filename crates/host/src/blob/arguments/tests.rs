//! Packs of a client and the fetches of executors, over loopback.

use super::parts::{KEPT_MAX, PART_OVERHEAD, WINDOWS_MAX};
use super::*;
use crate::blob::format::{Answer, Greeting, Part, Request};
use crate::blob::{BlobLease, BlobOptions, BlobServer, BlobStore, PACKED_MAX, Packs};
use midflight_tasks::blob::{BlobSecret, Ends};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use zerocopy::{FromZeros, IntoBytes};

const PATIENCE: Duration = Duration::from_secs(20);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The client's UDP address, not that of its blob server.
const CLIENT: SocketAddr = SocketAddr::new(HERE, 70);

struct Client {
    store: Arc<BlobStore>,
    packs: Packs,
    server: BlobServer,
}

impl Client {
    fn new(max_bytes: usize) -> Self {
        let store = BlobStore::new(BlobOptions { max_bytes, ..BlobOptions::default() });
        let server = BlobServer::start((Ipv4Addr::LOCALHOST, 0).into(), Arc::clone(&store), false).unwrap();
        Self { packs: Packs::new(Arc::clone(&store)), store, server }
    }

    fn add(&self, argument: &[u8]) -> (Arc<BlobLease>, BlobRef) {
        self.packs.add(argument, self.server.port()).unwrap()
    }

    /// Arguments of 200 bytes at offsets 208 bytes apart.
    fn many(&self, count: u32) -> Vec<(Arc<BlobLease>, BlobRef)> {
        (0..count).map(|number| self.add(&argument(number))).collect()
    }
}

/// A server of one pack that answers on command.
struct Told {
    port: u16,
    requests: Arc<AtomicUsize>,
    /// For each request, the number of zeros to answer with; `None`: not here.
    answers: mpsc::Sender<Option<u32>>,
}

impl Told {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (port, requests) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let ((answers, told), counted) = (mpsc::channel::<Option<u32>>(), Arc::clone(&requests));
        std::thread::spawn(move || {
            let mut streams = Vec::new();
            listener.set_nonblocking(true).unwrap();
            loop {
                if let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nonblocking(false).unwrap();
                    let (mut request, mut part) = (Request::new_zeroed(), Part::new_zeroed());
                    stream.write_all(Greeting::welcome(5).as_bytes()).unwrap();
                    stream.read_exact(request.as_mut_bytes()).unwrap();
                    stream.read_exact(part.as_mut_bytes()).unwrap();
                    streams.push((stream, request.nonce.get()));
                    counted.fetch_add(1, Relaxed);
                }
                match told.recv_timeout(Duration::from_millis(1)) {
                    Ok(length) => {
                        let (mut stream, nonce) = streams.remove(0);
                        let [server, client] = [stream.local_addr(), stream.peer_addr()].map(Result::unwrap);
                        let proof = |length| BlobSecret::new(7).answer_proof(nonce, Ends { server, client }, length);
                        let here = |length| Answer::here(length, proof(length));
                        let head = length.map_or_else(Answer::not_here, here);
                        let bytes = [head.as_bytes(), &vec![0; length.unwrap_or(0) as usize]].concat();
                        let _ = stream.write_all(&bytes); // a client that refuses it has closed
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Self { port, requests, answers }
    }

    fn reference(&self, number: u16) -> BlobRef {
        BlobRef { id: 7.into(), length: 200.into(), port: self.port.into(), at: (1 + 13 * number).into() }
    }

    fn wait_for_requests(&self, count: usize) {
        wait_until(|| self.requests.load(Relaxed) == count);
    }

    /// Answers `count` requests, oldest first.
    fn answer(&self, count: usize, is_here: bool) {
        (0..count).for_each(|_| self.answers.send(is_here.then_some(4_096)).unwrap());
    }
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it does not come about");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn argument(number: u32) -> Vec<u8> {
    number.to_be_bytes().repeat(50)
}

fn executor() -> Arguments {
    Arguments::new(Fetcher::new(PATIENCE))
}

#[test]
fn one_fetch_brings_the_arguments_of_many_tasks() {
    let (client, executor) = (Client::new(1 << 30), executor());
    let kept = client.many(10_000);
    for (number, (_, blob)) in (0..).zip(&kept) {
        assert_eq!(executor.get(CLIENT, blob).unwrap(), argument(number));
    }
    assert!(executor.counts().fetches < 60, "{} for 2 MB", executor.counts().fetches);
    drop(kept);
    assert_eq!((client.store.counters().kept, client.store.counters().kept_bytes), (0, 0));
}

#[test]
fn an_executor_among_many_fetches_little_that_it_does_not_need() {
    let (client, executor) = (Client::new(1 << 30), executor());
    let kept = client.many(20_000);
    let mine = (0u32..).zip(&kept).step_by(100);
    mine.for_each(|(number, (_, blob))| assert_eq!(executor.get(CLIENT, blob).unwrap(), argument(number)));
    let parts = lock(&executor.parts);
    let bytes: usize = parts.kept.values().flat_map(BTreeMap::values).map(|part| part.bytes.len()).sum();
    assert!(bytes < 10 * 200 * 200, "{bytes} bytes for 200 arguments of 200 bytes, of 4 MB");
}

#[test]
fn parts_that_are_dropped_before_they_were_of_use_make_windows_smaller() {
    let mut parts = Parts::default();
    for number in 0..2_000u32 {
        let name = (SocketAddr::new(HERE, (number % 100) as u16), 7);
        let range = 65_536 * (number / 100)..65_536 * (number / 100) + 200;
        if number < 100 {
            parts.windows.entry(name.0).or_default().bytes = LARGEST_WINDOW;
        }
        let Found::Fetch { most, number } = parts.begin(name, &range) else { panic!("nobody has fetched it") };
        parts.has_come(number);
        parts.insert(name, &range, vec![0; most as usize]);
    }
    assert!(parts.windows.values().all(|window| window.bytes < 4_096), "{:?}", parts.windows);
}

#[test]
fn an_argument_that_was_fetched_with_others_is_at_hand() {
    let (client, executor) = (Client::new(1 << 30), executor());
    let kept = client.many(3);
    assert_eq!(executor.at_hand(CLIENT, &kept[1].1), None);
    executor.get(CLIENT, &kept[0].1).unwrap();
    assert_eq!(executor.at_hand(CLIENT, &kept[2].1), Some(argument(2)));
    let later = client.add(&argument(3));
    assert_eq!(executor.at_hand(CLIENT, &later.1), None, "it was added afterwards");
    assert_eq!(executor.get(CLIENT, &later.1).unwrap(), argument(3));
}

#[test]
fn threads_that_need_what_is_coming_wait_for_it() {
    let (executor, server) = (executor(), Told::start());
    let (begin, rest) = (server.reference(0), (1..16).map(|number| server.reference(number)));
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(executor.get(CLIENT, &begin).unwrap(), [0; 200]));
        server.wait_for_requests(1);
        for blob in rest {
            let executor = &executor;
            scope.spawn(move || assert_eq!(executor.get(CLIENT, &blob).unwrap(), [0; 200]));
        }
        wait_until(|| lock(&executor.parts).waiting == 15);
        server.answer(1, true);
    });
    assert_eq!(executor.counts().fetches, 1);
}

/// Otherwise every slot in turn would time out on a client that has left.
#[test]
fn threads_whose_fetch_has_failed_try_side_by_side() {
    let (executor, server) = (executor(), Told::start());
    let (begin, rest) = (server.reference(0), (1..8).map(|number| server.reference(number)));
    let get = |blob: BlobRef| assert!(matches!(executor.get(CLIENT, &blob), Err(FetchError::Gone)));
    std::thread::scope(|scope| {
        scope.spawn(|| get(begin));
        server.wait_for_requests(1);
        rest.for_each(|blob| drop(scope.spawn(move || get(blob))));
        wait_until(|| lock(&executor.parts).waiting == 7);
        server.answer(1, false);
        server.wait_for_requests(8);
        server.answer(7, false);
    });
    assert_eq!(executor.counts().fetches, 8);
}

#[test]
fn a_server_that_sends_more_than_it_was_asked_for_is_refused() {
    let (executor, server) = (executor(), Told::start());
    std::thread::scope(|scope| {
        let got = scope.spawn(|| executor.get(CLIENT, &server.reference(0)));
        server.wait_for_requests(1);
        server.answers.send(Some(LARGEST_WINDOW)).unwrap();
        let got = got.join().unwrap();
        assert!(matches!(got, Err(FetchError::Length { expected: 200, .. })), "{got:?}");
    });
}

#[test]
fn what_is_gone_is_gone_for_each_thread() {
    let (client, executor) = (Client::new(1 << 30), executor());
    let (lease, blob) = client.add(&[1; 20]);
    drop(lease);
    std::thread::scope(|scope| {
        let get = || executor.get(CLIENT, &blob);
        let threads = [scope.spawn(get), scope.spawn(get)];
        for thread in threads {
            let got = thread.join().unwrap();
            assert!(matches!(got, Err(FetchError::Gone)), "{got:?}");
        }
    });
}

#[test]
fn a_pack_is_kept_while_one_of_its_tasks_is_open_and_its_bytes_count() {
    let client = Client::new(1_000);
    let mut kept = vec![client.add(&[1; 100]), client.add(&[2; 500])];
    assert_eq!((client.store.counters().kept, client.store.counters().kept_bytes), (1, 112 + 512));
    assert!(client.packs.add(&[3; 400], 1).is_err(), "it has no room");
    kept.remove(0);
    assert_eq!(client.store.counters().kept_bytes, 112 + 512);
    kept.clear();
    assert_eq!((client.store.counters().kept, client.store.counters().kept_bytes), (0, 0));
    client.add(&[3; 900]);
}

#[test]
fn a_reference_beyond_what_a_pack_has_is_refused() {
    let (client, executor) = (Client::new(1 << 30), executor());
    let (_lease, blob) = client.add(&[1; 20]);
    let short = BlobRef { length: 33.into(), ..blob };
    assert!(matches!(executor.get(CLIENT, &short), Err(FetchError::Length { expected: 33, got: 32 })));
    for length in [0, LARGEST_WINDOW + 1] {
        let wrong = BlobRef { length: length.into(), ..blob };
        assert!(matches!(executor.get(CLIENT, &wrong), Err(FetchError::NotPacked { .. })));
    }
    let behind = BlobRef { at: u16::MAX.into(), ..blob };
    assert!(matches!(executor.get(CLIENT, &behind), Err(FetchError::Gone)));
}

#[test]
fn what_is_kept_is_bounded_by_bytes_parts_and_clients() {
    for length in [1, 1_000] {
        let mut parts = Parts::default();
        for number in 0..20_000u32 {
            let name = (SocketAddr::new(HERE, (number % 5_000) as u16), u64::from(number / 5_000));
            parts.insert(name, &(number..number + 1), vec![0; length]);
            assert!(parts.bytes <= KEPT_MAX && parts.windows.len() <= WINDOWS_MAX);
        }
        let kept: usize =
            parts.kept.values().flat_map(BTreeMap::values).map(|part| part.bytes.len() + PART_OVERHEAD).sum();
        let count = KEPT_MAX / (length + PART_OVERHEAD);
        assert_eq!((kept, parts.order.len()), (parts.bytes, count), "{length}");
    }
}

#[test]
fn a_part_takes_the_place_of_those_within_it() {
    let mut parts = Parts::default();
    let name = (SocketAddr::new(HERE, 1), 1);
    parts.insert(name, &(208..408), vec![1; 208]);
    parts.insert(name, &(0..200), vec![2; 1_000]);
    assert_eq!(parts.find(name, &(416..616)), Some(vec![2; 200]), "the short part would hide it");
    assert_eq!((parts.bytes, parts.kept[&name].len()), (1_000 + PART_OVERHEAD, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Arguments of any lengths, requested by two executors in any order, some after their tasks have ended.
    #[test]
    fn each_argument_is_the_one_that_was_added(
        arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=PACKED_MAX), 1..60),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<bool>()), 1..120),
    ) {
        let client = Client::new(1 << 30);
        let executors = [executor(), executor()];
        let mut kept: Vec<_> = arguments.iter().map(|argument| client.add(argument)).map(|(l, b)| (Some(l), b)).collect();
        for (index, which, ends) in order {
            let (number, executor) = (index.index(kept.len()), &executors[usize::from(which)]);
            match executor.get(CLIENT, &kept[number].1) {
                Ok(got) => prop_assert!(got == arguments[number]),
                Err(error) => {
                    prop_assert!(matches!(error, FetchError::Gone), "{}", error);
                    prop_assert!(kept[number].0.is_none(), "its task is open");
                }
            }
            if ends {
                kept[number].0 = None;
            }
        }
    }
}

#[test]
fn a_client_that_has_ended_is_warned_of_once() {
    let executor = executor();
    let clients = [1, 2].map(|port| SocketAddr::from((IpAddr::from([127, 0, 0, 1]), port)));
    let warned = [0, 0, 0, 1, 1].map(|client| executor.is_to_warn_of(clients[client]));
    assert_eq!(warned, [true, false, false, true, false]);
}
