//! Both ends prove that they know the id; a port or a kept connection proves nothing (T13).

use super::*;
use std::net::Shutdown;
use std::thread::{Scope, spawn};

/// Fetches blob 7 from a foreign server. Returns what that server was asked, and the outcome.
fn fetch_from(answer: impl FnOnce(&TcpStream, &Request) -> Answer + Send) -> (Vec<u8>, Result<Vec<u8>, FetchError>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reference = reference_to(&listener, 7);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let (mut stream, request) = accept(&listener);
            stream.write_all(&[answer(&stream, &request).as_bytes(), b"evil"].concat()).unwrap();
            request.as_bytes().to_vec()
        });
        let fetched = Fetcher::new(PATIENCE).fetch([127, 0, 0, 1].into(), &reference, RESULT_BLOB_MAX);
        (asked.join().unwrap(), fetched)
    })
}

/// Reference to a blob of four bytes at this listener.
fn reference_to(listener: &TcpListener, id: u64) -> BlobRef {
    let port = listener.local_addr().unwrap().port();
    BlobRef { id: id.into(), length: 4.into(), port: port.into(), reserved: 0.into() }
}

/// Such as a process with the port of an ended client or executor.
#[test]
fn t13_bytes_of_who_does_not_know_the_id_are_refused_and_do_not_learn_it() {
    let known = |stream: &TcpStream, request: &Request| answer_to(stream, request, 7, 4);
    assert_eq!(fetch_from(known).1.unwrap(), b"evil", "one who knows it");
    let repeated = fetch_from(known).0;
    type Forgery = fn(&TcpStream, &Request) -> Answer;
    let forgeries: [(&str, Forgery); 6] = [
        ("no proof", |_, _| Answer::here(4, 0)),
        ("another blob's", |stream, request| answer_to(stream, request, 8, 4)),
        ("the name", |_, request| Answer::here(4, request.name.get())),
        ("to another client", |stream, request| answer_from(stream, request, |ends| ends.client.set_port(1))),
        ("of another server", |stream, request| answer_from(stream, request, |ends| ends.server.set_port(1))),
        ("of another length", |stream, request| Answer::here(4, answer_to(stream, request, 7, 5).proof.get())),
    ];
    for (what, forgery) in forgeries {
        let (asked, fetched) = fetch_from(forgery);
        assert!(matches!(fetched, Err(FetchError::Forged(_))), "{what}: {fetched:?}");
        assert_ne!(asked, repeated, "{what}: each request has a number of its own");
        assert!(asked.windows(8).all(|bytes| bytes != 7u64.to_be_bytes()), "{what}: {asked:?}");
    }
    let ends = Ends { server: ([127, 0, 0, 1], 1).into(), client: ([127, 0, 0, 1], 2).into() };
    let asked = Asked { ends, challenge: 5, earlier: 0, nonce: 99 };
    let old = Request::new(BlobSecret::new(7), &asked);
    let (_, fetched) = fetch_from(move |stream, _| answer_to(stream, &old, 7, 4));
    assert!(matches!(fetched, Err(FetchError::Forged(_))), "an answer to an earlier request: {fetched:?}");
}

/// The answer of a server that knows the id, on a connection with other ends.
fn answer_from(stream: &TcpStream, request: &Request, other: impl Fn(&mut Ends)) -> Answer {
    let mut ends = Ends { server: stream.local_addr().unwrap(), client: stream.peer_addr().unwrap() };
    other(&mut ends);
    Answer::here(4, BlobSecret::new(7).answer_proof(request.nonce.get(), ends, 4))
}

/// A server that was asked for a blob knows its name, but not its id.
#[test]
fn t13_bytes_are_for_who_proves_that_he_knows_the_id() {
    let (store, server, address) = serve(patient());
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let whole = lease.reference(server.port()).id.get();
    // Made for another connection, or earlier for this one.
    let overheard = open(1, address).request(whole);
    let mut connection = open(1, address);
    assert!(connection.is_answered(&lease.reference(server.port())));
    connection.requests = 0;
    let repeated = connection.request(whole);
    connection.write(&repeated);
    assert!(ends_with(&connection.stream, NOT_HERE), "the same again");
    let mut connection = open(1, address);
    connection.write(&overheard);
    assert!(ends_with(&connection.stream, NOT_HERE));
    assert_eq!((store.counters().unknown, store.counters().served), (2, 1));
}

/// As any user can do on loopback: a relay at the server's port on another address passes on both sides' bytes. It must not see the
/// content.
#[test]
fn t13_nothing_goes_through_a_relay() {
    let (store, server, address) = serve(patient());
    let lease = store.keep(Arc::new(b"good".to_vec()), Duration::ZERO).unwrap();
    let relay = TcpListener::bind(("127.0.0.2", address.port())).unwrap();
    let fetched = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (asks, answers) = (relay.accept().unwrap().0, TcpStream::connect(address).unwrap());
            pass_on(scope, &asks, &answers);
            pass_on(scope, &answers, &asks);
        });
        Fetcher::new(PATIENCE).fetch([127, 0, 0, 2].into(), &lease.reference(server.port()), RESULT_BLOB_MAX)
    });
    assert!(matches!(fetched, Err(FetchError::Gone)), "{fetched:?}");
    assert_eq!((store.counters().unknown, store.counters().served), (1, 0));
}

/// Copies bytes from one stream to the other.
fn pass_on<'a>(scope: &'a Scope<'a, '_>, from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    scope.spawn(move || {
        let _ = std::io::copy(&mut from, &mut to); // the peer has closed
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// The kept connection may lead to a process that had the server's port for a while.
#[test]
fn t13_where_a_kept_connection_is_of_no_use_a_new_one_is_tried() {
    type Answers = fn(&TcpStream, &Request) -> Option<Vec<u8>>;
    let kept: [(&str, Answers); 4] = [
        ("another blob", |stream, request| Some([answer_to(stream, request, 1, 4).as_bytes(), b"evil"].concat())),
        ("a refusal", |_, _| Some(Answer::not_here().as_bytes().to_vec())),
        ("nonsense", |_, _| Some(vec![7; 16])),
        ("silence", |_, _| None),
    ];
    for (what, answers) in kept {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let references = [1, 7].map(|id| reference_to(&listener, id));
        let server = spawn(move || {
            let (mut kept, request) = accept(&listener);
            kept.write_all(&[answer_to(&kept, &request, 1, 4).as_bytes(), b"evil"].concat()).unwrap();
            let mut request = Request::new_zeroed();
            kept.read_exact(request.as_mut_bytes()).unwrap();
            if let Some(said) = answers(&kept, &request) {
                kept.write_all(&said).unwrap();
            }
            let (mut new, request) = accept(&listener);
            new.write_all(&[answer_to(&new, &request, 7, 4).as_bytes(), b"good"].concat()).unwrap();
        });
        let fetcher = Fetcher::new(PATIENCE);
        let fetched = references.map(|blob| fetcher.fetch([127, 0, 0, 1].into(), &blob, RESULT_BLOB_MAX).unwrap());
        assert_eq!(fetched, [b"evil", b"good"], "{what}");
        server.join().unwrap();
    }
}

/// A neighbour takes all connections of one address and stays silent.
#[test]
fn t14_silent_neighbours_keep_nobody_from_his_blob() {
    let (store, server, address) = serve(BlobOptions { max_connections: 9, ..patient() });
    let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
    let reference = lease.reference(server.port());
    let mut mine = open(1, address);
    assert!(mine.is_answered(&reference));
    let silent: Vec<_> = (0..20).map(|_| open(1, address)).collect();
    assert!(open(1, address).is_answered(&reference), "a new one");
    assert!(mine.is_answered(&reference), "what has proved itself stays");
    assert_eq!(store.counters().refused, 0);
    drop(silent);
}
