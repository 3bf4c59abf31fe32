//! Source addresses of a switch that listens on a wildcard address (T13).

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_host::Switch;
use midflight_wire::tasks::{Packet, Register, Retrieve, SlotName, Submit, TaskInfo, parse};
use midflight_wire::{counting, packet};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// A hand-written executor or client.
struct Party {
    socket: UdpSocket,
    port: u16,
}

impl Party {
    fn new(switch: &Switch) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Self { socket, port: switch.local_addr().port() }
    }

    fn send(&self, to: [u8; 4], datagram: &[u8]) {
        self.socket.send_to(datagram, SocketAddr::from((to, self.port))).unwrap();
    }

    fn receive(&self) -> (SocketAddr, Vec<u8>) {
        let mut bytes = [0; 2048];
        let (length, from) = self.socket.recv_from(&mut bytes).unwrap();
        (from, bytes[..length].to_vec())
    }

    /// Sends a request, gets a cookie, and repeats the request with it.
    fn ask(&self, to: [u8; 4], datagram: impl Fn(u64) -> Vec<u8>) -> Vec<u8> {
        self.send(to, &datagram(0));
        let cookie = match parse(&self.receive().1) {
            Ok(Packet::Cookie(cookie)) => cookie.cookie.get(),
            other => panic!("{other:?} instead of COOKIE"),
        };
        self.send(to, &datagram(cookie));
        let (from, answer) = self.receive();
        assert_eq!(from.ip(), SocketAddr::from((to, 0)).ip());
        answer
    }
}

fn register(cookie: u64) -> Vec<u8> {
    counting(&Register { executor: 7.into(), cookie: cookie.into(), ..Register::new(0, 1) }, 1)
}

fn retrieve(epoch: u32, name: SlotName, sequence: u32) -> Vec<u8> {
    packet(&Retrieve { counter: u64::from(sequence).into(), ..Retrieve::new(epoch, 0) }, &[name.wait(sequence)])
}

fn submit(sequence: u32, cookie: u64) -> Vec<u8> {
    packet(&Submit { client: 9.into(), cookie: cookie.into(), ..Submit::new(0, sequence) }, &[TaskInfo::PLAIN])
}

#[test]
fn t13_tasks_come_from_the_address_that_the_executor_itself_asked_last() {
    let switch = Switch::builder().listen("0.0.0.0:0".parse().unwrap()).start().unwrap();
    let (executor, client) = (Party::new(&switch), Party::new(&switch));
    let registered = executor.ask([127, 0, 0, 1], register);
    let Ok(Packet::Registered(_, names)) = parse(&registered) else { panic!("REGISTERED") };
    let (name, epoch) = (names[0], switch.epoch());
    let another_generation = SlotName { generation: (name.generation.get() ^ 1).into(), ..name };

    executor.send([127, 0, 0, 1], &retrieve(epoch, name, 1));
    // Packets that an attacker with a forged source address could send, and a copy.
    executor.send([127, 0, 0, 9], b"x");
    executor.send([127, 0, 0, 9], &retrieve(epoch, another_generation, 2));
    assert!(matches!(parse(&executor.receive().1), Ok(Packet::Reset(..))));
    executor.send([127, 0, 0, 9], &retrieve(epoch, name, 1));
    client.ask([127, 0, 0, 1], |cookie| submit(1, cookie));
    let (from, assigned) = executor.receive();
    assert!(matches!(parse(&assigned), Ok(Packet::Assign(..))));
    assert_eq!(from.ip().to_string(), "127.0.0.1");

    executor.send([127, 0, 0, 9], &retrieve(epoch, name, 2));
    // Once a later packet is answered, the earlier one has been taken.
    executor.send([127, 0, 0, 1], &register(0));
    assert!(matches!(parse(&executor.receive().1), Ok(Packet::Cookie(..))));
    client.send([127, 0, 0, 1], &submit(2, 0));
    assert_eq!(executor.receive().0.ip().to_string(), "127.0.0.9");
}
