//! Sockets over loopback.

use super::*;
use crate::waker::Waker;

fn receive_all(socket: &Socket, expected: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let (waker, mut batch, mut all) = (Waker::new().unwrap(), ReceiveBatch::new(), Vec::new());
    while all.len() < expected {
        waker.wait(socket, Some(2_000_000_000));
        assert!(socket.receive(&mut batch), "{} of {expected} arrived", all.len());
        all.extend(batch.iter().map(|(from, bytes)| (from, bytes.to_vec())));
    }
    all
}

#[test]
fn runs_of_equal_datagrams_leave_by_gso_and_arrive_as_they_were() {
    let (a, b) = (Socket::bind("127.0.0.1:0".parse().unwrap()), Socket::bind("127.0.0.1:0".parse().unwrap()));
    let (a, b) = (a.unwrap(), b.unwrap());
    let sizes = [100, 100, 100, 60, 100, PACKET_MAX, PACKET_MAX, 1, 0, 7];
    let mut queue = SendQueue::default();
    for (i, size) in sizes.iter().enumerate() {
        queue.push(&a, b.local_addr(), &vec![i as u8; *size]);
    }
    queue.flush(&a);
    let got = receive_all(&b, sizes.len());
    let expected: Vec<_> = sizes.iter().enumerate().map(|(i, s)| (a.local_addr(), vec![i as u8; *s])).collect();
    assert_eq!(got, expected);
    assert_eq!(a.counts().sent, sizes.len() as u64);
    assert!(a.counts().send_calls < sizes.len() as u64);
    assert_eq!(b.counts().received, sizes.len() as u64);
}

/// The kernel reports a removed route or a moved address with the same error (EINVAL) as missing GSO support. Anyone can cause an answer to
/// port 0.
#[test]
fn t16_what_cannot_be_sent_does_not_end_gso() {
    let (a, b) = (Socket::bind("127.0.0.1:0".parse().unwrap()), Socket::bind("127.0.0.1:0".parse().unwrap()));
    let (a, b) = (a.unwrap(), b.unwrap());
    let nowhere = "127.0.0.1:0".parse().unwrap();
    let mut queue = SendQueue::default();
    for count in [1, 3] {
        (0..count).for_each(|_| queue.push(&a, nowhere, &[7; 100]));
        queue.flush(&a);
    }
    assert_eq!((a.counts().send_errors, a.counts().sent), (4, 0));
    (0..10).for_each(|_| queue.push(&a, b.local_addr(), &[7; 100]));
    queue.flush(&a);
    assert_eq!((a.counts().sent, a.counts().send_calls), (10, 1));
    receive_all(&b, 10);
}

#[cfg(feature = "replica")]
#[test]
fn a_socket_knows_about_how_many_datagrams_wait_in_it() {
    let (a, b) = (Socket::bind("127.0.0.1:0".parse().unwrap()), Socket::bind("127.0.0.1:0".parse().unwrap()));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(b.waiting(), 0);
    // Alternating lengths, so that no datagrams share a buffer.
    for i in 0..100 {
        a.send(None, b.local_addr(), &vec![7; 100 + i % 2], 1_000);
    }
    assert!((50..500).contains(&b.waiting()), "{}", b.waiting());
    let mut batch = ReceiveBatch::new();
    assert!(b.receive(&mut batch) && batch.is_full());
    while b.receive(&mut batch) {}
    assert!(!batch.is_full());
    assert_eq!(b.waiting(), 0);
}

#[cfg(feature = "kernel")]
#[test]
fn datagrams_that_are_kept_apart_never_share_a_buffer() {
    let (a, b) = (Socket::bind("127.0.0.1:0".parse().unwrap()), Socket::bind("127.0.0.1:0".parse().unwrap()));
    let (a, b) = (a.unwrap(), b.unwrap());
    let mut merged = Vec::new();
    for apart in [false, true] {
        if apart {
            b.disable_gro().unwrap();
        }
        let mut queue = SendQueue::default();
        (0..RECEIVE_BATCH).for_each(|_| queue.push(&a, b.local_addr(), &[7; 100]));
        queue.flush(&a);
        let (waker, mut batch) = (Waker::new().unwrap(), ReceiveBatch::new());
        waker.wait(&b, Some(2_000_000_000));
        assert!(b.receive(&mut batch));
        merged.push((batch.filled, batch.iter().count()));
    }
    assert_eq!(merged, [(1, RECEIVE_BATCH), (RECEIVE_BATCH, RECEIVE_BATCH)]);
}

#[test]
fn an_ipv6_wildcard_talks_to_ipv4_and_shows_it_as_ipv4() {
    let dual = Socket::bind("[::]:0".parse().unwrap()).unwrap();
    let four = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let to_dual: SocketAddr = ([127, 0, 0, 1], dual.local_addr().port()).into();
    let mut queue = SendQueue::default();
    queue.push(&four, to_dual, b"there");
    queue.flush(&four);
    assert_eq!(receive_all(&dual, 1), [(four.local_addr(), b"there".to_vec())]);
    queue.push(&dual, four.local_addr(), b"back");
    queue.flush(&dual);
    assert_eq!(receive_all(&four, 1), [(to_dual, b"back".to_vec())]);
}

#[test]
fn answers_leave_from_the_address_that_was_asked() {
    for (listen, asked) in [("0.0.0.0:0", "127.0.0.9"), ("[::]:0", "127.0.0.9"), ("[::]:0", "::1")] {
        let all = Socket::bind(listen.parse().unwrap()).unwrap();
        let asked = SocketAddr::new(asked.parse().unwrap(), all.local_addr().port());
        let peer = Socket::bind((if asked.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }).parse().unwrap()).unwrap();
        let mut queue = SendQueue::default();
        queue.push(&peer, asked, b"question");
        queue.flush(&peer);
        let (waker, mut batch) = (Waker::new().unwrap(), ReceiveBatch::new());
        waker.wait(&all, Some(2_000_000_000));
        assert!(all.receive(&mut batch) && all.is_on_all_addresses() && !peer.is_on_all_addresses());
        let (from, own, _) = batch.iter_with_local_address().next().unwrap();
        queue.push_from(&all, own, from, b"answer");
        queue.flush(&all);
        assert_eq!(receive_all(&peer, 1), [(asked, b"answer".to_vec())]);
    }
}

/// A peer that asks two of our addresses gets each answer from the right one, even if both answers could leave together.
#[test]
fn t13_a_run_leaves_from_one_address_only() {
    let all = Socket::bind("0.0.0.0:0".parse().unwrap()).unwrap();
    let peer = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let own = |last: u8| SocketAddr::from(([127, 0, 0, last], all.local_addr().port()));
    let mut queue = SendQueue::default();
    for last in [8, 9, 9, 8] {
        queue.push_from(&all, Some(own(last).ip()), peer.local_addr(), &[last; 100]);
    }
    queue.flush(&all);
    assert_eq!(receive_all(&peer, 4), [8, 9, 9, 8].map(|last| (own(last), vec![last; 100])));
}

#[test]
fn what_the_kernel_drops_is_counted() {
    let (a, b) = (Socket::bind("127.0.0.1:0".parse().unwrap()), Socket::bind("127.0.0.1:0".parse().unwrap()));
    let (a, b) = (a.unwrap(), b.unwrap());
    socket2::SockRef::from(&b.socket).set_recv_buffer_size(4096).unwrap();
    for _ in 0..100 {
        a.send(None, b.local_addr(), &[0; 1000], 1000);
    }
    assert!(b.counts().kernel_dropped > 50, "{:?}", b.counts());
}

#[test]
fn a_port_in_use_is_one_line_that_says_what_to_do() {
    let first = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = Socket::bind(first.local_addr()).unwrap_err().to_string();
    assert!(error.contains("choose another port") && !error.contains('\n'), "{error}");
}
