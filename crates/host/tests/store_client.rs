//! The client of the store over real sockets, with a store in one piece.

#![allow(clippy::unwrap_used, reason = "tests may, in helpers too")]

#[path = "../../store/tests/common/mod.rs"]
mod common;

use common::packets::Asked;
use common::store::Store;
use midflight_host::Error;
use midflight_host::store::{Answer, Cas, Operation, Reached, StoreClient, StoreError};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

struct Served {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Store>>,
}

impl Served {
    /// Leaves every `leaves_out`th request unanswered.
    fn start(leaves_out: usize) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || {
            let (mut store, mut buffer, mut came) = (Store::default(), [0; 2048], 0);
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                let answer = store.handle(&Asked::read(&buffer[..length]));
                came += 1;
                if came % leaves_out != 0 {
                    socket.send_to(&answer, from).unwrap();
                }
            }
            store
        }));
        Self { address, stop, thread }
    }

    fn client(&self) -> StoreClient {
        StoreClient::builder().switch(self.address).set(1).connect().unwrap()
    }

    fn end(mut self) -> Store {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

#[test]
fn each_operation_has_its_answer() {
    let served = Served::start(usize::MAX);
    let client = served.client();
    assert_eq!(client.get("a"), Ok(None));
    assert_eq!(client.put("a", "1"), Ok(()));
    assert_eq!((client.get("a"), client.exists("a")), (Ok(Some(b"1".to_vec())), Ok(true)));
    assert_eq!(client.incr("a", 4), Ok(5));
    assert_eq!(client.cas("a", "4", "x"), Ok(Cas::Conflict { present: b"5".to_vec() }));
    assert_eq!((client.cas("a", "5", "x"), client.cas("b", "5", "x")), (Ok(Cas::Done), Ok(Cas::NotFound)));
    assert_eq!(client.incr("a", 1), Err(StoreError::NotANumber.into()));
    assert_eq!((client.delete("a"), client.delete("a"), client.exists("a")), (Ok(true), Ok(false), Ok(false)));
    assert!(matches!(client.put("", "1"), Err(Error::Invalid(why)) if why.starts_with("the key is empty")));
    assert_eq!((client.open(), client.switch()), (0, served.address));
}

#[test]
fn r3_writes_of_several_threads_are_applied_once_though_answers_are_lost() {
    const THREADS: i64 = 8;
    const EACH: i64 = 50;
    let served = Served::start(7);
    let client = served.client();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..EACH).for_each(|_| _ = client.incr("sum", 1).unwrap()));
        }
    });
    assert_eq!(client.get("sum"), Ok(Some((THREADS * EACH).to_string().into_bytes())));
    assert!(client.counts().protocol.repeated > 0, "{:?}", client.counts());
    client.close();
    assert_eq!(served.end().applied.len() as i64, THREADS * EACH);
}

#[test]
fn operations_that_are_not_waited_for_end_by_themselves() {
    let served = Served::start(usize::MAX);
    let client = served.client();
    let put = |key: u8| client.submit(Operation::Put { key: vec![b'k', key], value: vec![key] }).unwrap();
    let handles: Vec<_> = (0..100).map(put).collect();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !handles.iter().all(|handle| handle.has_ended()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(client.open(), 0);
    for mut handle in handles {
        assert_eq!(handle.wait_timeout(Duration::ZERO), Some(Ok(Answer::Done)));
        assert_eq!(handle.wait(), Err(Error::Taken), "an outcome is given once");
    }
}

#[test]
fn what_has_no_answer_fails_in_time_and_at_the_latest_when_the_client_closes() {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = StoreClient::builder().switch(nobody).timeout(Duration::from_millis(200)).connect_lazy().unwrap();
    let error = client.put("a", "1").unwrap_err();
    assert_eq!(
        error,
        StoreError::TimedOut { was_sent: false, reached: Reached::Nobody }.into(),
        "its client id was never opened"
    );
    assert!(!error.is_unknown());
    let mut read = client.submit(Operation::Get { key: b"a".to_vec() }).unwrap();
    assert_eq!(read.wait_timeout(Duration::from_millis(1)), None);
    client.close();
    assert_eq!(read.wait(), Err(Error::Closed));
}

#[test]
fn connect_returns_once_the_store_has_answered() {
    let served = Served::start(usize::MAX);
    assert!(served.client().counts().protocol.submitted > 0);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let within = Duration::from_millis(50);
    let error = StoreClient::builder().switch(nobody).connect_timeout(within).connect().unwrap_err();
    assert_eq!(error, Error::NotConnected { addresses: vec![nobody], within });
}

#[test]
fn a_handle_is_a_future() {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Wake};

    struct Unpark(std::thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let served = Served::start(usize::MAX);
    let client = served.client();
    let mut put = pin!(client.submit(Operation::Put { key: b"k".into(), value: b"v".into() }).unwrap());
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let outcome = loop {
        match put.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => break outcome,
            Poll::Pending => std::thread::park(),
        }
    };
    assert_eq!(outcome, Ok(Answer::Done));
}

#[test]
fn r7_a_bound_out_of_range_is_refused_by_name() {
    let error = StoreClient::builder().connect().unwrap_err().to_string();
    assert!(error.starts_with("`switches` names 0"), "{error}");
}
