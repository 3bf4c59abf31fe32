//! T13: answers to absent neighbours do not delay answers to present ones. Runs in a lab: needs root; skips loudly without.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_host::{SocketBuffers, SocketCounts, Switch, SwitchBuilder};
use midflight_net::testing::labs_work;
use midflight_net::{Lab, Options, Place, SWITCH_IPV4, SWITCH_IPV6};
use midflight_wire::Builder;
use midflight_wire::tasks::{Packet, Register, parse};
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const ATTACKER: usize = 0;
const NEWCOMERS: usize = 1;
const COUNT: u64 = 20;
/// Last bytes of unused addresses in the attacker's network.
const ABSENT: std::ops::Range<u8> = 100..250;

/// Sockets at the attacker's host with unused addresses of its network, which do not resolve.
fn absent(lab: &Lab, is_ipv4: bool) -> Vec<UdpSocket> {
    let own = &lab.hosts()[ATTACKER];
    let bind = |last: u8| {
        let [a, b, c, _] = own.ipv4.octets();
        let ip: IpAddr = match is_ipv4 {
            true => Ipv4Addr::new(a, b, c, last).into(),
            false => Ipv6Addr::from(own.ipv6.to_bits() & !0xff | u128::from(last)).into(),
        };
        let address = SocketAddr::new(ip, 6666);
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).unwrap();
        if is_ipv4 { socket.set_ip_transparent_v4(true) } else { socket.set_ip_transparent_v6(true) }.unwrap();
        socket.bind(&address.into()).unwrap();
        socket.into()
    };
    lab.within(Place::Host(ATTACKER), || ABSENT.map(bind).collect()).unwrap()
}

fn dropped(counts: SocketCounts) -> u64 {
    counts.send_to_absent + counts.send_to_unproven + counts.send_blocked
}

/// Floods until answers to absent neighbours are dropped; then each newcomer asks once and must be answered. Waits for the answers of each
/// round: on a busy machine the kernel engine's ring to user space would overflow, and lose a newcomer's answer with the others.
fn flood_then_ask(
    lab: &Lab,
    to: SocketAddr,
    counts: impl Fn() -> SocketCounts,
    question: impl Fn(u64) -> Vec<u8>,
    is_answer: impl Fn(&[u8]) -> bool,
) {
    let (absent, deadline) = (absent(lab, to.is_ipv4()), Instant::now() + PATIENCE);
    let mut number = COUNT;
    while dropped(counts()) == 0 {
        assert!(Instant::now() < deadline, "{:?}", counts());
        for socket in &absent {
            number += 1;
            socket.send_to(&question(number), to).unwrap();
        }
        while counts().sent + dropped(counts()) < number - COUNT {
            assert!(Instant::now() < deadline, "{} questions: {:?}", number - COUNT, counts());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let any =
        SocketAddr::new(if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }, 0);
    let newcomer = lab.within(Place::Host(NEWCOMERS), || UdpSocket::bind(any)).unwrap().unwrap();
    newcomer.set_read_timeout(Some(PATIENCE)).unwrap();
    for number in 0..COUNT {
        newcomer.send_to(&question(number), to).unwrap();
    }
    let mut answer = [0; 2048];
    for number in 0..COUNT {
        let received = newcomer.recv(&mut answer);
        assert!(received.is_ok(), "{number} of {COUNT} newcomers were answered: {:?}", counts());
        assert!(is_answer(&answer[..received.unwrap()]), "{answer:?}");
    }
    assert!(counts().send_to_absent > 0, "{:?}", counts());
}

fn register(executor: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    Builder::new(&mut bytes, &Register { executor: executor.into(), ..Register::new(0, 1) }).set_count(1);
    bytes
}

fn newcomers_are_answered(config: impl Fn(&Lab, SocketAddr) -> SwitchBuilder) {
    if !labs_work() {
        return;
    }
    for (any, own) in [("0.0.0.0:0", SWITCH_IPV4.into()), ("[::]:0", IpAddr::from(SWITCH_IPV6))] {
        let lab = Lab::up(&Options::temporary(2)).unwrap();
        let config = config(&lab, any.parse().unwrap());
        let switch = lab.within(Place::Switch, || config.start()).unwrap().unwrap();
        let to = SocketAddr::new(own, switch.local_addr().port());
        let is_cookie = |answer: &[u8]| matches!(parse(answer), Ok(Packet::Cookie(_)));
        flood_then_ask(&lab, to, || switch.socket_counts(), register, is_cookie);
    }
}

#[test]
fn t13_absent_neighbours_hold_back_no_answer_of_a_switch() {
    newcomers_are_answered(|_, listen| Switch::builder().listen(listen));
}

/// The limit of Linux before 6.18 with the default `net.core.wmem_max`.
#[test]
fn t13_absent_neighbours_hold_back_no_answer_of_a_switch_with_a_small_buffer() {
    let buffers = SocketBuffers { send_bytes: 212_992, ..SocketBuffers::default() };
    newcomers_are_answered(|_, listen| Switch::builder().listen(listen).buffers(buffers));
}

#[cfg(feature = "kernel")]
#[test]
fn t13_absent_neighbours_hold_back_no_answer_of_a_switch_in_the_kernel() {
    use midflight_host::{KernelOptions, SwitchEngine, XdpMode};
    use midflight_net::testing::skip;

    let attach = |lab: &Lab| {
        let mut options = KernelOptions::default();
        options.interfaces = lab.interfaces().iter().map(|name| (*name).to_string()).collect();
        options.mode = XdpMode::Native;
        SwitchEngine::Kernel(options)
    };
    let smallest = midflight_dataplane::TasksConfig { queue: 1, slots: 1, clients: 1, ..Default::default() };
    match midflight_dataplane::kernel::KernelTasks::new(&smallest, 1, 0, 0) {
        Ok(_) => newcomers_are_answered(|lab, listen| Switch::builder().listen(listen).engine(attach(lab))),
        Err(why) => skip(why),
    }
}

#[cfg(feature = "agent")]
#[test]
fn t13_absent_neighbours_hold_back_no_answer_of_an_agent() {
    use midflight_host::cache::agent::{Agent, AgentOptions};
    use midflight_wire::cache::{Ends, Kind, Netrs, NetrsRequest, Packet, parse};
    use zerocopy::{FromZeros, IntoBytes};

    if !labs_work() {
        return;
    }
    for own in [IpAddr::from(SWITCH_IPV4), SWITCH_IPV6.into()] {
        let lab = Lab::up(&Options::temporary(2)).unwrap();
        let options = AgentOptions::new(SocketAddr::new(own, 0), "memcached://127.0.0.1:1".parse().unwrap());
        let start = || Agent::start(options, || panic!("the agent has ended by itself")).unwrap();
        let agent = lab.within(Place::Switch, start).unwrap();
        let to = agent.local_addr();
        let direct = |number: u64| {
            let request = NetrsRequest { start: Netrs::for_server(Kind::Direct), group: [0; 3] };
            let ends = Ends { server: to.into(), request: (number + 1).into(), ..Ends::new_zeroed() };
            [request.as_bytes(), ends.as_bytes()].concat()
        };
        let is_cookie = |answer: &[u8]| matches!(parse(answer), Ok(Packet::Cookie(..)));
        flood_then_ask(&lab, to, || agent.report().socket, direct, is_cookie);
    }
}
