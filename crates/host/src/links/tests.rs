//! Links over loopback.

use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(20);

/// A node, with the number of its wake-ups.
struct Node {
    links: Links,
    wakes: Arc<AtomicU64>,
}

impl Node {
    fn new(node: u64, address: SocketAddr, change: impl FnOnce(&mut LinkOptions)) -> Self {
        let mut options = LinkOptions::new(0xc1, 7, node, 1);
        options.patience = SHORT;
        change(&mut options);
        let wakes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&wakes);
        let links = Links::start(listen(address).unwrap(), options, move || _ = counted.fetch_add(1, Ordering::SeqCst))
            .unwrap();
        Self { links, wakes }
    }

    fn next(&self) -> LinkEvent {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(event) = self.links.event() {
                return event;
            }
            assert!(Instant::now() < end, "nothing happens: {:?}", self.links.counters());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Both lanes, the prompt one first.
    fn both_up(&self) -> [Link; 2] {
        let mut links = [(); 2].map(|()| match self.next() {
            LinkEvent::Up(link) => link,
            other => panic!("{other:?}"),
        });
        links.sort_by_key(|link| link.lane);
        links
    }

    fn message(&self) -> (Link, Vec<u8>) {
        match self.next() {
            LinkEvent::Message(link, message) => (link, message),
            other => panic!("{other:?}"),
        }
    }
}

fn pair(patience: Duration) -> (Node, Node) {
    let [a, b] = [1, 2].map(|node| Node::new(node, ANY, |options| options.patience = patience));
    b.links.set_peers(&[(1, a.links.address())]);
    a.links.set_peers(&[(1, a.links.address()), (2, b.links.address())]);
    (a, b)
}

#[test]
fn messages_arrive_whole_in_order_and_on_their_lane() {
    let (a, b) = pair(SHORT);
    let ([prompt, bulk], [prompt_b, bulk_b]) = (a.both_up(), b.both_up());
    assert_eq!((prompt.lane, bulk.lane, prompt.peer, prompt_b.peer), (Lane::Prompt, Lane::Bulk, 2, 1));
    for length in [0, 1, 300_000] {
        a.links.send(bulk, &vec![length as u8; length]);
        assert_eq!(b.message(), (bulk_b, vec![length as u8; length]));
    }
    for number in 0..100u8 {
        b.links.send(prompt_b, &[number]);
    }
    (0..100).for_each(|number| assert_eq!(a.message(), (prompt, vec![number])));
    assert!(a.wakes.load(Ordering::SeqCst) > 0);
    assert_eq!((a.links.counters().broken, b.links.counters()), (0, LinkCounters::default()));
}

#[test]
fn a_node_that_restarts_gets_links_of_another_generation() {
    let (a, b) = pair(SHORT);
    let (first, _) = (a.both_up(), b.both_up());
    let address = b.links.address();
    drop(b);
    let broken = [(); 2].map(|()| match a.next() {
        LinkEvent::Broken(link) => link,
        other => panic!("{other:?}"),
    });
    assert!(first.iter().all(|link| broken.contains(link) && !a.links.has_room(*link)));
    a.links.send(first[0], b"late");
    assert_eq!(a.links.counters().late, 1);
    let b = Node::new(2, address, |_| ());
    b.links.set_peers(&[(1, a.links.address())]);
    let second = a.both_up();
    assert!(first.iter().all(|old| second.iter().all(|new| new.generation > old.generation)));
    b.links.set_peers(&[]);
    assert!(matches!(a.next(), LinkEvent::Broken(_)), "it is no peer any more");
}

#[test]
fn a_slow_peer_costs_no_more_than_the_room_and_the_other_lane_goes_on() {
    let (a, b) = pair(LONG);
    let ([prompt, bulk], _) = (a.both_up(), b.both_up());
    let (message, mut sent) = (vec![7; 1 << 20], 0);
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        if a.links.has_room(bulk) {
            a.links.send(bulk, &message);
            sent += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!((8..40).contains(&sent), "{sent} MiB are on their way");
    a.links.send(prompt, b"beat");
    let woken = a.wakes.load(Ordering::SeqCst);
    let mut arrived = 0;
    while arrived < sent + 1 {
        let (link, message) = b.message();
        assert!(message.len() == 1 << 20 || link.lane == Lane::Prompt);
        arrived += 1;
    }
    assert!(a.links.has_room(bulk) && a.wakes.load(Ordering::SeqCst) > woken);
}

#[test]
fn a_peer_that_is_not_known_yet_makes_the_link() {
    let [low, high] = [1, 2].map(|node| Node::new(node, ANY, |_| ()));
    high.links.set_peers(&[(1, low.links.address())]);
    let (to_low, to_high) = (high.both_up(), low.both_up());
    assert_eq!(to_low.map(|link| (link.peer, link.lane)), [(1, Lane::Prompt), (1, Lane::Bulk)]);
    assert_eq!(to_high.map(|link| link.peer), [2, 2]);
    low.links.send(to_high[0], b"known now");
    assert_eq!(high.message(), (to_low[0], b"known now".to_vec()));
}

/// Sends a hello as node `from` and keeps the connection.
fn greet(node: &Node, from: u64, to: u64) -> (TcpStream, bool) {
    let lane = Lane::Prompt;
    let hello = hello::Hello { cluster: 0xc1, set: 7, from, to, lane, generation: 9 };
    let mut stream = TcpStream::connect(node.links.address()).unwrap();
    stream.write_all(&hello.encode()).unwrap();
    let is_taken = stream.read_exact(&mut [0; hello::HELLO_BYTES]).is_ok();
    (stream, is_taken)
}

#[test]
fn r7_strangers_get_few_links_and_keep_no_peer_out() {
    let node = Node::new(5, ANY, |_| ());
    node.links.set_peers(&[(4, ANY)]);
    let kept: Vec<_> = (100..130).map(|from| greet(&node, from, 5)).collect();
    assert_eq!(kept.iter().filter(|(_, is_taken)| *is_taken).count(), 16);
    assert_eq!(node.links.counters().too_many, 14);
    assert!(greet(&node, 4, 5).1, "a peer has its place");
}

#[test]
fn t14_silent_connections_keep_out_no_peer_at_their_address() {
    let node = Node::new(5, ANY, |options| options.patience = LONG);
    let silent: Vec<_> = (0..256).map(|_| TcpStream::connect(node.links.address()).unwrap()).collect();
    let end = Instant::now() + LONG / 2;
    while !greet(&node, 4, 5).1 {
        assert!(Instant::now() < end, "no place among {} silent connections", silent.len());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn r7_short_messages_are_bounded_too() {
    let node = Node::new(5, ANY, |options| (options.room, options.patience) = (1000, LONG));
    let (mut stream, _) = greet(&node, 3, 5);
    stream.set_write_timeout(Some(SHORT)).unwrap();
    let empty = [0; 4 << 10];
    while stream.write_all(&empty).is_ok() {}
    let waiting = node.links.shared.events();
    assert!((2..=1 + 1000 / 64).contains(&waiting), "{waiting} wait: that it is up, and what there is room for");
}

#[test]
fn strangers_are_refused_and_counted() {
    let node = Node::new(5, ANY, |options| options.message_max = 1000);
    let hello = hello::Hello { cluster: 0xc1, set: 7, from: 3, to: 5, lane: Lane::Prompt, generation: 9 };
    let talk = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(node.links.address()).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer.len()
    };
    assert_eq!(talk(&hello::Hello { cluster: 1, ..hello }.encode()), 0);
    assert_eq!(talk(&hello::Hello { set: 8, ..hello }.encode()), 0);
    assert_eq!(talk(&hello::Hello { from: 5, ..hello }.encode()), 0);
    assert_eq!(talk(&hello::Hello { to: 6, ..hello }.encode()), 0);
    assert_eq!(talk(&[b'x'; hello::HELLO_BYTES]), 0);
    assert_eq!(talk(b"MFLK"), 0, "it says no more");
    assert!(node.links.event().is_none());
    let mut bytes = hello.encode().to_vec();
    bytes.extend([0, 0, 0, 1, 42, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(talk(&bytes), hello::HELLO_BYTES);
    assert!(matches!(node.next(), LinkEvent::Up(Link { peer: 3, generation: 9, .. })));
    assert_eq!(node.message().1, [42]);
    assert!(matches!(node.next(), LinkEvent::Broken(_)));
    let expected = LinkCounters {
        foreign: 2,
        not_for_us: 2,
        malformed: 1,
        silent: 1,
        too_long: 1,
        broken: 1,
        ..LinkCounters::default()
    };
    assert_eq!(node.links.counters(), expected);
}
