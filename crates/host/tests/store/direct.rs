//! R6: replicas answer clients directly over real sockets; and a network that blocks this.

use super::world::{SET, World, wait_until};
use midflight_dataplane::store::ReplyCheck;
use midflight_host::store::StoreClient;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// NAT in front of one client: passes only what comes from the switch.
struct Nat {
    inside: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Nat {
    fn start(switch: SocketAddr) -> Self {
        let [inside, outside] = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            Arc::new(socket)
        });
        // The kernel drops datagrams from elsewhere.
        outside.connect(switch).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let address = inside.local_addr().unwrap();
        let client = Arc::new(std::sync::Mutex::new(None));
        let mut threads = Vec::new();
        for is_out in [true, false] {
            let (inside, outside, stop, client) =
                (Arc::clone(&inside), Arc::clone(&outside), Arc::clone(&stop), Arc::clone(&client));
            threads.push(std::thread::spawn(move || {
                let mut buffer = [0; 2048];
                while !stop.load(Ordering::Relaxed) {
                    if is_out {
                        let Ok((length, from)) = inside.recv_from(&mut buffer) else { continue };
                        *client.lock().unwrap() = Some(from);
                        let _ = outside.send(&buffer[..length]);
                    } else {
                        let Ok(length) = outside.recv(&mut buffer) else { continue };
                        if let Some(to) = *client.lock().unwrap() {
                            let _ = inside.send_to(&buffer[..length], to);
                        }
                    }
                }
            }));
        }
        Self { inside: address, stop, threads }
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

fn direct(world: &World) -> u64 {
    let reports = world.replicas.iter().flatten().map(|replica| replica.report());
    reports.map(|report| report.counters.reads_direct).sum()
}

#[test]
fn r6_clients_get_answers_from_replicas_when_the_operator_wants_it() {
    let world = World::start("store-direct");
    let client = world.client();
    client.put("a", "1").unwrap();
    let read = |times: usize| (0..times).for_each(|_| assert_eq!(client.get("a"), Ok(Some(b"1".to_vec()))));
    read(100);
    assert_eq!(client.counts().protocol.direct_answers, 0);
    world.change_reply_check(ReplyCheck::Direct);
    wait_until("many answers have come directly", || {
        read(50);
        client.counts().protocol.direct_answers > 1_000
    });
    let counts = client.counts().protocol;
    assert!(counts.direct_answers < counts.answered - 101, "probes come through the switch: {counts:?}");
    assert_eq!(counts.foreign_address, 0, "{counts:?}");
    wait_until("the replicas have reported", || direct(&world) >= counts.direct_answers);
    world.change_reply_check(ReplyCheck::Strict);
    let before = client.counts().protocol.direct_answers;
    read(100);
    assert_eq!(client.counts().protocol.direct_answers, before);
}

#[test]
fn r5_clients_behind_nat_are_served_through_the_switch() {
    let world = World::start("store-nat");
    world.change_reply_check(ReplyCheck::Direct);
    let nat = Nat::start(world.switch.local_addr());
    let client = StoreClient::builder().switch(nat.inside).set(SET).connect_lazy().unwrap();
    client.put("a", "1").unwrap();
    for _ in 0..500 {
        assert_eq!(client.get("a"), Ok(Some(b"1".to_vec())));
    }
    let counts = client.counts().protocol;
    assert_eq!((counts.direct_answers, counts.direct_lost), (0, 1), "it has tried once");
    wait_until("the replicas have reported", || direct(&world) > 0);
}
