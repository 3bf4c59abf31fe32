//! XDP and TC on the interfaces of a lab, with real frames: what hosts send and see on their links, and what their
//! sockets receive.

use crate::capture::{Offload, PATIENCE, Port, Seen};
use crate::cookies::with_cookie_at;
use crate::datagrams::{
    EPOCH, of_another_version, operation, probe, question, records, register, registered, retrieve, submit,
};
use crate::frame::{AD, Flow, Q, Tag, bytes, ports, read, read_partial};
use crate::shells::{PORT, SECRET, config, lab, shells};
use etherparse::{Icmpv4Type, Icmpv6Type, PacketBuilder};
use midflight_dataplane::TasksProgram;
use midflight_dataplane::Verdict;
use midflight_dataplane::XdpMode;
use midflight_dataplane::kernel::{KernelEngine, Place, SHELL_COUNTS};
use midflight_dataplane::program::Engine;
use midflight_net::{HOST_INTERFACE, Lab, Place as At, SWITCH_IPV4, SWITCH_IPV6};
use midflight_wire::tasks::{Operation, SLOTS_MAX, SlotName};
use midflight_wire::{PACKET_MAX, Version};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

struct Stage {
    engine: KernelEngine<TasksProgram>,
    hosts: [Port; 2],
    /// The switch's MAC address on each link.
    macs: [[u8; 6]; 2],
    lab: Lab,
}

fn on_stage(mode: XdpMode, act: impl Fn(&mut Stage, bool)) {
    let Some(_) = shells() else { return };
    let Some(lab) = lab(2) else { return };
    let place = Place {
        listen: SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)),
        interfaces: lab.interfaces(),
        mode,
        keep: false,
        fresh: false,
    };
    let engine = lab.within(At::Switch, || KernelEngine::start(&config(), &place, EPOCH, SECRET)).unwrap().unwrap();
    let hosts = [0, 1].map(|host| lab.within(At::Host(host), || Port::open(HOST_INTERFACE)).unwrap());
    let macs = [0, 1].map(|host| lab.within(At::Switch, || Port::open(&lab.interfaces()[host]).mac).unwrap());
    let mut stage = Stage { engine, hosts, macs, lab };
    for ipv4 in [true, false] {
        stage.engine.kernel_mut().restart(&config(), EPOCH, SECRET).unwrap();
        stage.hosts.iter().for_each(|port| drop(port.all(|_| true)));
        act(&mut stage, ipv4);
        assert_eq!(["asserted", "send_failed", "hand_over_failed"].map(|name| stage.count(name)), [0; 3]);
        stage.engine.kernel().check().unwrap();
    }
}

fn switch(ipv4: bool) -> SocketAddr {
    let address = if ipv4 { IpAddr::from(SWITCH_IPV4) } else { SWITCH_IPV6.into() };
    SocketAddr::new(address, PORT)
}

/// A host's socket, and the frames of its datagrams.
struct Endpoint {
    host: usize,
    socket: UdpSocket,
    flow: Flow,
}

impl Stage {
    fn endpoint(&self, host: usize, ipv4: bool) -> Endpoint {
        let at = &self.lab.hosts()[host];
        let address = if ipv4 { IpAddr::from(at.ipv4) } else { at.ipv6.into() };
        let socket = self.lab.within(At::Host(host), || UdpSocket::bind((address, 0)).unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let (from, to) = (socket.local_addr().unwrap(), switch(ipv4));
        let flow = Flow { from_mac: self.hosts[host].mac, to_mac: self.macs[host], tags: vec![], from, to };
        Endpoint { host, socket, flow }
    }

    fn count(&self, name: &str) -> u64 {
        self.engine.kernel().shell_count(name)
    }

    /// The nonzero counts.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        let names = SHELL_COUNTS.iter().map(|&(name, _)| name);
        names.zip(self.engine.kernel().shell_counts()).filter(|&(_, count)| count > 0).collect()
    }

    /// The frame that carried a datagram from the switch.
    fn frame_to(&self, endpoint: &Endpoint) -> Seen {
        let is_answer = |seen: &Seen| !seen.outgoing && ports(&seen.frame) == Some((PORT, endpoint.flow.from.port()));
        self.hosts[endpoint.host].wait(is_answer).expect("a frame comes")
    }

    /// Sets whether the host's and the switch's end of a link complete checksums.
    fn checksums_by_hardware(&self, host: usize, host_does: bool, switch_does: bool) {
        self.lab.checksums_by_hardware(At::Host(host), HOST_INTERFACE, host_does).unwrap();
        self.lab.checksums_by_hardware(At::Switch, &self.lab.interfaces()[host], switch_does).unwrap();
    }

    fn park(&self, executor: &Endpoint, number: u64, slots: u8) -> Vec<SlotName> {
        let names = registered(&executor.ask(&register(number, slots)));
        let parked = self.engine.kernel().stats().parked;
        for name in &names {
            executor.send(&retrieve(std::slice::from_ref(name), 1));
        }
        self.await_parked(parked + u32::from(slots));
        names
    }

    /// Waits until this many slots are parked, since parking has no answer.
    fn await_parked(&self, slots: u32) {
        let until = Instant::now() + PATIENCE;
        while self.engine.kernel().stats().parked != slots {
            assert!(Instant::now() < until, "{slots} slots do not wait: {:?}", self.counts());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Endpoint {
    /// With the current cookie.
    fn send(&self, datagram: &[u8]) {
        let datagram = self.with_cookie(datagram);
        assert_eq!(self.socket.send_to(&datagram, self.flow.to).unwrap(), datagram.len());
    }

    fn with_cookie(&self, datagram: &[u8]) -> Vec<u8> {
        let now = clock_gettime(ClockId::Monotonic);
        let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        with_cookie_at(now_ns, self.flow.from, datagram.to_vec())
    }

    fn receive(&self) -> Vec<u8> {
        let mut buffer = [0; 2048];
        let (length, from) = self.socket.recv_from(&mut buffer).expect("an answer comes");
        assert_eq!(from, self.flow.to);
        buffer[..length].to_vec()
    }

    fn ask(&self, datagram: &[u8]) -> Vec<u8> {
        self.send(datagram);
        self.receive()
    }
}

#[test]
fn xdp_answers_a_socket_by_a_frame_with_a_whole_checksum() {
    on_stage(XdpMode::Native, |stage, ipv4| {
        let client = stage.endpoint(0, ipv4);
        for hardware in [true, false] {
            stage.checksums_by_hardware(0, hardware, true);
            assert_eq!(operation(&client.ask(&probe(1, 1))), Operation::ProbeAck);
            let seen = stage.frame_to(&client);
            assert!(!seen.partial);
            assert_eq!(read(&seen.frame).0, client.flow.back());
        }
        assert_eq!(stage.counts(), [("xdp_taken", 2), ("xdp_answered", 2)]);
    });
}

/// VERSION, whose frames are padded, and COOKIE for a sender without one, which leaves no record.
#[test]
fn short_answers_reach_sockets() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        on_stage(mode, |stage, ipv4| {
            let client = stage.endpoint(0, ipv4);
            for hardware in [true, false] {
                stage.checksums_by_hardware(0, hardware, false);
                let taken_by = if hardware && mode == XdpMode::Generic { "tc_taken" } else { "xdp_taken" };
                let before = stage.count(taken_by);
                assert_eq!(client.ask(&of_another_version(PACKET_MAX)), Version::OURS.as_bytes());
                assert_eq!(client.ask(&of_another_version(PACKET_MAX)), Version::OURS.as_bytes());
                assert_eq!(stage.count(taken_by), before + 2, "{mode:?} {hardware} {:?}", stage.counts());
            }
            assert_eq!((stage.engine.kernel().stats().clients, stage.engine.kernel().stats().tasks.submitted), (0, 0));
        });
    }
}

/// Interface by interface: where a veth is not known as one, TC answers what XDP leaves alone, and asks the kernel. It
/// refuses a frame of which the kernel knows nothing, although its sum looks the same.
#[test]
fn a_checksum_left_to_hardware_is_believed_by_interface() {
    on_stage(XdpMode::Native, |stage, ipv4| {
        let index = stage.lab.within(At::Switch, || Port::open(&stage.lab.interfaces()[1]).index).unwrap();
        stage.engine.kernel_mut().set_mode(XdpMode::Native, &[index]);
        for (host, taken_by) in [(0, "tc_taken"), (1, "xdp_taken")] {
            stage.checksums_by_hardware(host, true, true);
            let client = stage.endpoint(host, ipv4);
            let before = stage.count(taken_by);
            assert_eq!(operation(&client.ask(&question(1, 1))), Operation::CancelAck);
            assert_eq!(stage.count(taken_by), before + 1, "{:?}", stage.counts());
            let forged = client.flow.partial(client.flow.request(&question(1, 2)), &question(1, 2));
            stage.hosts[host].send(&forged, Offload::default());
            // XDP accepts it on a veth. The second frame on the same link tells which was accepted first.
            let first = if host == 0 { 3 } else { 2 };
            assert_eq!(client.ask(&question(1, 3))[12..16], [0, 0, 0, first]);
        }
        assert_eq!(stage.count("passed_checksum"), 1, "{:?}", stage.counts());
    });
}

/// A SUBMIT for a parked executor, with its checksum complete or left to hardware, over links with and without checksum
/// offload: each arrives correct, or known as incomplete.
#[test]
fn tc_sends_right_checksums_by_all_links() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        on_stage(mode, |stage, ipv4| {
            let (client, executor) = (stage.endpoint(0, ipv4), stage.endpoint(1, ipv4));
            for (number, (sender, links)) in
                [(true, true), (true, false), (false, true), (false, false)].into_iter().enumerate()
            {
                stage.checksums_by_hardware(0, sender, links);
                stage.checksums_by_hardware(1, sender, links);
                stage.park(&executor, 5 + number as u64, 1);
                stage.hosts.iter().for_each(|port| drop(port.all(|_| true)));
                client.send(&submit(1, 1 + number as u32, 1));
                assert_eq!(operation(&executor.receive()), Operation::Assign);
                assert_eq!(operation(&client.receive()), Operation::SubmitAck);
                for endpoint in [&client, &executor] {
                    let seen = stage.frame_to(endpoint);
                    assert_eq!(seen.partial, sender && links, "{mode:?} {sender} {links}");
                    let (flow, _) = if seen.partial { read_partial(&seen.frame) } else { read(&seen.frame) };
                    assert_eq!(flow, endpoint.flow.back());
                }
            }
            assert!(stage.count("tc_taken") >= 4, "{:?}", stage.counts());
        });
    }
}

/// In generic mode, XDP sees local packets with incomplete checksums; TC answers them.
#[test]
fn generic_mode_serves_sockets_too() {
    on_stage(XdpMode::Generic, |stage, ipv4| {
        let client = stage.endpoint(0, ipv4);
        for (hardware, taken_by) in [(true, "tc_taken"), (false, "xdp_taken")] {
            stage.checksums_by_hardware(0, hardware, false);
            assert_eq!(operation(&client.ask(&probe(1, 1))), Operation::ProbeAck);
            assert_eq!(read(&stage.frame_to(&client).frame).0, client.flow.back());
            assert_eq!(stage.count(taken_by), 1);
        }
    });
}

/// XDP finds tags in the frame, TC partly in metadata.
#[test]
fn tagged_frames_are_answered_with_their_tags() {
    on_stage(XdpMode::Native, |stage, ipv4| {
        let sets: [&[Tag]; 3] = [&[(Q, 0x2005)], &[(AD, 0x0123)], &[(AD, 7), (Q, 0xe008)]];
        for (number, tags) in sets.into_iter().enumerate() {
            let tagged = |endpoint: Endpoint| {
                let flow = Flow { tags: tags.to_vec(), ..endpoint.flow.clone() };
                Endpoint { flow, ..endpoint }
            };
            let (client, executor) = (tagged(stage.endpoint(0, ipv4)), tagged(stage.endpoint(1, ipv4)));
            let ask = |endpoint: &Endpoint, datagram: &[u8]| {
                let frame = endpoint.flow.request(&endpoint.with_cookie(datagram));
                stage.hosts[endpoint.host].send(&frame, Offload::default());
                let (flow, answer) = read(&stage.frame_to(endpoint).frame);
                assert_eq!(flow, endpoint.flow.back());
                answer
            };
            let names = registered(&ask(&executor, &register(5 + number as u64, 1)));
            stage.hosts[1].send(&executor.flow.request(&retrieve(&names, 1)), Offload::default());
            stage.await_parked(1);
            assert_eq!(operation(&ask(&client, &probe(1, 1))), Operation::ProbeAck);
            assert_eq!(operation(&ask(&client, &submit(1, 1 + number as u32, 1))), Operation::SubmitAck);
            let (flow, assign) = read(&stage.frame_to(&executor).frame);
            assert_eq!((flow, operation(&assign)), (executor.flow.back(), Operation::Assign));
        }
        assert_eq!((stage.count("tc_taken"), stage.count("handed_over")), (3, 0), "{:?}", stage.counts());
    });
}

/// A veth's frame has hardly any room to grow: XDP uses what it finds before and after it, TC handles longer answers.
#[test]
fn answers_longer_than_the_frame_arrive_whole() {
    on_stage(XdpMode::Native, |stage, ipv4| {
        let (client, executor) = (stage.endpoint(0, ipv4), stage.endpoint(1, ipv4));
        for sequence in 1..=2 {
            client.ask(&submit(1, sequence, 32));
        }
        let names = registered(&executor.ask(&register(5, 32)));
        assert_eq!(names.len(), 32);
        let mut by_xdp = stage.count("xdp_answered");
        let most = &names[..SLOTS_MAX];
        for name in most {
            assert_eq!(records(&executor.ask(&retrieve(std::slice::from_ref(name), 1))), 1);
            by_xdp += 1;
            assert_eq!(stage.count("xdp_answered"), by_xdp, "one task fits by XDP: {:?}", stage.counts());
        }
        let assign = executor.ask(&retrieve(most, 2));
        assert_eq!(
            (records(&assign), stage.count("xdp_answered")),
            (SLOTS_MAX as u8, by_xdp),
            "thirteen do not: {:?}",
            stage.counts()
        );
        let stats = stage.engine.kernel().stats();
        assert_eq!((stats.reasons[Verdict::RepeatedWait as usize], stats.tasks.assigned), (0, 26));
    });
}

/// It gets no answer, so the length of one does not matter.
#[test]
fn a_retrieve_of_many_slots_that_finds_nothing_is_taken_by_xdp() {
    on_stage(XdpMode::Native, |stage, ipv4| {
        let executor = stage.endpoint(1, ipv4);
        let names = stage.park(&executor, 5, SLOTS_MAX as u8);
        let before = [stage.count("xdp_taken"), stage.count("tc_taken")];
        executor.send(&retrieve(&names, 1));
        executor.send(&retrieve(&names, 2));
        let until = Instant::now() + PATIENCE;
        while stage.count("xdp_taken") < before[0] + 2 {
            assert!(Instant::now() < until, "{before:?} became {:?}", stage.counts());
        }
        assert_eq!(stage.count("tc_taken"), before[1]);
    });
}

/// T2: executors that lost their tasks repeat their waits when nothing is queued. The repeated answers are as long as
/// the first ones.
#[test]
fn t2_tasks_told_again_arrive_whole() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        on_stage(mode, |stage, ipv4| {
            stage.checksums_by_hardware(1, false, false);
            let (client, executor) = (stage.endpoint(0, ipv4), stage.endpoint(1, ipv4));
            client.ask(&submit(1, 1, SLOTS_MAX as u32));
            let names = registered(&executor.ask(&register(5, SLOTS_MAX as u8)));
            for _ in 0..2 {
                assert_eq!(usize::from(records(&executor.ask(&retrieve(&names, 1)))), SLOTS_MAX);
            }
            assert_eq!(stage.engine.kernel().stats().reasons[Verdict::Replayed as usize], 0);
        });
    }
}

/// Merged datagrams, or frames to be split, reach the process's socket one by one.
#[test]
fn merged_datagrams_reach_the_socket() {
    on_stage(XdpMode::Generic, |stage, ipv4| {
        let process = stage.lab.within(At::Switch, || UdpSocket::bind(switch(ipv4)).unwrap()).unwrap();
        process.set_read_timeout(Some(PATIENCE)).unwrap();
        let client = stage.endpoint(0, ipv4);
        let two = [probe(1, 1), probe(1, 2)].concat();
        let (frame, l4) = (client.flow.partial(client.flow.request(&two), &two), client.flow.l4());
        stage.hosts[0].send(&frame, Offload { l4: Some(l4), segment: probe(1, 1).len() as u16 });
        for sequence in 1..=2 {
            let mut buffer = [0; 2048];
            let (length, from) = process.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], from), (&probe(1, sequence)[..], client.flow.from));
        }
        assert_eq!(stage.counts(), [("passed_merged", 1)]);
    });
}

/// The kernel reassembles fragments for the process's socket.
#[test]
fn fragments_reach_the_socket() {
    on_stage(XdpMode::Native, |stage, ipv4| {
        let process = stage.lab.within(At::Switch, || UdpSocket::bind(switch(ipv4)).unwrap()).unwrap();
        process.set_read_timeout(Some(PATIENCE)).unwrap();
        let client = stage.endpoint(0, ipv4);
        client.send(&[0x4d; 3_000]);
        let mut buffer = [0; 4096];
        assert_eq!(process.recv_from(&mut buffer).unwrap(), (3_000, client.flow.from));
        assert_eq!(stage.counts(), [("passed_fragment", 3)]);
    });
}

/// Traffic through the switch's machine or to its other services is not affected, on any port.
#[test]
fn other_traffic_goes_on() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        on_stage(mode, |stage, ipv4| {
            let (here, there) = (stage.endpoint(0, ipv4), stage.endpoint(1, ipv4));
            let host = SocketAddr::new(there.flow.from.ip(), PORT);
            let at_host = stage.lab.within(At::Host(1), || UdpSocket::bind(host).unwrap()).unwrap();
            at_host.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut buffer = [0; 2048];
            here.socket.send_to(&probe(1, 1), host).unwrap();
            assert_eq!(at_host.recv_from(&mut buffer).unwrap(), (probe(1, 1).len(), here.flow.from), "forwarded");
            for (at, address) in [(At::Host(1), host), (At::Switch, switch(ipv4))] {
                let listener = stage.lab.within(at, || TcpListener::bind(address).unwrap()).unwrap();
                let connect = || TcpStream::connect_timeout(&address, PATIENCE).unwrap();
                let mut stream = stage.lab.within(At::Host(0), connect).unwrap();
                let (mut other, _) = listener.accept().unwrap();
                stream.write_all(&[7; 100_000]).unwrap();
                drop(stream);
                let mut all = Vec::new();
                assert_eq!(other.read_to_end(&mut all).unwrap(), 100_000, "TCP to {at}");
            }
            assert!(is_echoed(stage, &here.flow), "ICMP");
            assert_eq!(stage.counts(), []);
            assert_eq!(stage.engine.kernel().stats().packets.iter().sum::<u64>(), 0);
        });
    }
}

fn is_echoed(stage: &Stage, flow: &Flow) -> bool {
    let ethernet = PacketBuilder::ethernet2(flow.from_mac, flow.to_mac);
    let (mut frame, echo) = (Vec::new(), etherparse::IcmpEchoHeader { id: 7, seq: 1 });
    match (flow.from.ip(), flow.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let packet = ethernet.ipv4(from.octets(), to.octets(), 64).icmpv4(Icmpv4Type::EchoRequest(echo));
            packet.write(&mut frame, b"ping").unwrap();
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let packet = ethernet.ipv6(from.octets(), to.octets(), 64).icmpv6(Icmpv6Type::EchoRequest(echo));
            packet.write(&mut frame, b"ping").unwrap();
        }
        _ => panic!("two families"),
    }
    stage.hosts[0].send(&frame, Offload::default());
    let l4 = flow.l4();
    let reply = if flow.is_ipv4() { 0 } else { 129 };
    let is_reply = |seen: &Seen| {
        !seen.outgoing
            && seen.frame.len() >= l4 + 8
            && seen.frame[l4] == reply
            && bytes(&seen.frame, l4 + 4) == [0, 7, 0, 1]
    };
    stage.hosts[0].wait(is_reply).is_some()
}
