//! Packs of a client and what executors fetch of them, over loopback.

use super::*;
use crate::blob::{BlobLease, BlobOptions, BlobServer, BlobStore, PACKED_MAX, Packs};
use proptest::prelude::*;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A client's side.
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

    /// Arguments of 200 bytes, which begin 208 bytes apart.
    fn many(&self, count: u32) -> Vec<(Arc<BlobLease>, BlobRef)> {
        (0..count).map(|number| self.add(&argument(number))).collect()
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
        assert_eq!(executor.get(HERE, blob).unwrap(), argument(number));
    }
    assert!(executor.fetches() < 60, "{} for 2 MB", executor.fetches());
    drop(kept);
    assert_eq!((client.store.counters().kept, client.store.counters().kept_bytes), (0, 0));
}

#[test]
fn an_executor_among_many_fetches_little_that_it_does_not_need() {
    let (client, executor) = (Client::new(1 << 30), executor());
    let kept = client.many(20_000);
    let mine = (0u32..).zip(&kept).step_by(100);
    mine.for_each(|(number, (_, blob))| assert_eq!(executor.get(HERE, blob).unwrap(), argument(number)));
    let parts = lock(&executor.parts);
    assert!(parts.bytes < 10 * 200 * 200, "{} bytes for 200 arguments of 200 bytes, of 4 MB", parts.bytes);
}

#[test]
fn an_argument_that_was_fetched_with_others_is_at_hand() {
    let (client, executor) = (Client::new(1 << 30), executor());
    let kept = client.many(3);
    assert_eq!(executor.at_hand(HERE, &kept[1].1), None);
    executor.get(HERE, &kept[0].1).unwrap();
    assert_eq!(executor.at_hand(HERE, &kept[2].1), Some(argument(2)));
    let later = client.add(&argument(3));
    assert_eq!(executor.at_hand(HERE, &later.1), None, "it was added afterwards");
    assert_eq!(executor.get(HERE, &later.1).unwrap(), argument(3));
}

#[test]
fn threads_that_need_what_is_coming_wait_for_it() {
    let (client, executor) = (Client::new(1 << 30), executor());
    let kept = client.many(16);
    let all = std::sync::Barrier::new(16);
    std::thread::scope(|scope| {
        for (number, (_, blob)) in (0..).zip(&kept) {
            let (all, executor) = (&all, &executor);
            scope.spawn(move || {
                all.wait();
                assert_eq!(executor.get(HERE, blob).unwrap(), argument(number));
            });
        }
    });
    assert!(executor.fetches() < 16, "each thread has fetched");
}

#[test]
fn what_is_gone_is_gone_for_each_thread() {
    let (client, executor) = (Client::new(1 << 30), executor());
    let (lease, blob) = client.add(&[1; 20]);
    drop(lease);
    std::thread::scope(|scope| {
        let get = || executor.get(HERE, &blob);
        let threads = [scope.spawn(get), scope.spawn(get)];
        for thread in threads {
            let got = thread.join().unwrap();
            assert!(matches!(got, Err(FetchError::Gone)), "{got:?}");
        }
    });
    assert!(lock(&executor.parts).coming.is_empty());
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
    assert!(matches!(executor.get(HERE, &short), Err(FetchError::Length { expected: 33, got: 32 })));
    let long = BlobRef { length: (LARGEST_WINDOW + 1).into(), ..blob };
    assert!(matches!(executor.get(HERE, &long), Err(FetchError::TooLarge { .. })));
    let behind = BlobRef { at: u16::MAX.into(), ..blob };
    assert!(matches!(executor.get(HERE, &behind), Err(FetchError::Gone)));
    assert!(lock(&executor.parts).coming.is_empty());
}

#[test]
fn what_is_kept_is_bounded_by_bytes_and_clients() {
    let mut parts = Parts::default();
    for number in 0..10_000u32 {
        let name = (SocketAddr::new(HERE, (number % 5_000) as u16), u64::from(number / 5_000));
        parts.insert(name, number, Part { bytes: vec![0; 1_000], used: 0 });
        assert!(parts.bytes <= KEPT_MAX && parts.windows.len() <= WINDOWS_MAX);
    }
    let kept: usize = parts.kept.values().flat_map(BTreeMap::values).map(|part| part.bytes.len()).sum();
    assert_eq!((kept, parts.order.len()), (parts.bytes, parts.bytes / 1_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Arguments of any lengths, got in any order, some of them after their tasks have ended, by two executors.
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
            match executor.get(HERE, &kept[number].1) {
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
