//! What TC takes, and by which ways its answers leave.

use crate::capture::Port;
use crate::datagrams::{EPOCH, operation, probe, records, register, registered, retrieve, submit};
use crate::frame::{AD, Flow, Q, Tag, bytes, get16, put16, read};
use crate::shells::{OWN_MAC, PEER_MAC, PORT, Shells, TIME, config, counted, flow, lab, own, shells};
use midflight_dataplane::Out;
use midflight_dataplane::kernel::{Action, Arrival, Departure};
use midflight_lab::{Lab, Place, SWITCH_IPV4, SWITCH_IPV6};
use midflight_wire::{Operation, PACKET_MAX, SlotName};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

/// Shells in a lab's switch, whose interfaces lead to two hosts.
struct Stage<'a> {
    shells: Shells,
    lab: &'a Lab,
    /// By which the client's frames come.
    near: Port,
    /// By which the executor's come.
    far: Port,
}

/// The executor's MAC address.
const FAR_MAC: [u8; 6] = [0x02, 0xfa, 0x11, 0x22, 0x33, 0x44];

/// Does something on a stage where nothing has happened yet.
fn on_a_stage(act: impl FnOnce(&mut Stage<'_>) + Send) {
    let Some(shells) = shells() else { return };
    let Some(lab) = lab(2) else { return };
    let mut all = Some((shells, act));
    lab.within(Place::Switch, || {
        let (shells, act) = all.take().unwrap();
        act(&mut Stage { shells, lab: &lab, near: Port::open("host0"), far: Port::open("host1") });
    })
    .unwrap();
}

/// The same twice, by each version of IP.
fn on_stage(act: impl Fn(&mut Stage<'_>, bool) + Send + Sync) {
    on_a_stage(|stage| {
        for ipv4 in [true, false] {
            stage.shells.restart(&config(), EPOCH, 1).unwrap();
            stage.handed_over();
            stage.sent();
            act(stage, ipv4);
        }
    });
}

impl Stage<'_> {
    fn client(&self, ipv4: bool) -> Flow {
        Flow { to_mac: self.near.mac, ..flow(ipv4, 1) }
    }

    fn executor(&self, ipv4: bool, number: u16) -> Flow {
        Flow { from_mac: FAR_MAC, to_mac: self.far.mac, ..flow(ipv4, 100 + number) }
    }

    /// A frame of the client, given to TC as if XDP had passed it on.
    fn by_tc(&mut self, flow: &Flow, datagram: &[u8]) -> Departure {
        let frame = flow.request(datagram);
        self.shells.run_tc(TIME, &Arrival { interface: self.near.index, ..Arrival::new(&frame) }).unwrap()
    }

    /// A frame of an executor, given to XDP and, if that passes it, to TC; the answer, if there is one.
    fn by_both(&mut self, flow: &Flow, datagram: &[u8]) -> Option<Vec<u8>> {
        let frame = flow.request(datagram);
        let arrival = Arrival { interface: self.far.index, ..Arrival::new(&frame) };
        let mut departure = self.shells.run_xdp(TIME, &arrival).unwrap();
        if departure.action == Action::Pass {
            departure = self.shells.run_tc(TIME, &arrival).unwrap();
        }
        assert_ne!(departure.action, Action::Pass);
        (departure.action == Action::Transmit).then(|| read(&departure.frame).1)
    }

    /// An executor with slots that wait.
    fn park(&mut self, flow: &Flow, executor: u64, slots: u8) -> Vec<SlotName> {
        let names = registered(&self.by_both(flow, &register(executor, slots)).unwrap());
        for name in &names {
            assert_eq!(self.by_both(flow, &retrieve(std::slice::from_ref(name), 1)), None);
        }
        names
    }

    /// What left by the interfaces to the client and to the executor.
    fn sent(&self) -> [Vec<Vec<u8>>; 2] {
        [&self.near, &self.far].map(|port| {
            let ours = port.all(|seen| seen.outgoing && is_of_switch(&seen.frame));
            ours.into_iter().map(|seen| seen.frame).collect()
        })
    }

    /// From where, to whom, what.
    fn handed_over(&mut self) -> Vec<(Option<IpAddr>, SocketAddr, Vec<u8>)> {
        let mut all = Vec::new();
        let mut handover = self.shells.open_handover().unwrap();
        let mut before = None;
        while before != Some(all.len()) {
            before = Some(all.len());
            handover.drain(|own, to, datagram| all.push((own, to, datagram.to_vec())));
        }
        all
    }

    /// The client submits a task for the executor who waits: its answer goes back, and the task to user space, which is told
    /// the address that the executor asks, if his way was learned.
    fn assert_handed_over(&mut self, client: &Flow, executor: &Flow, learned: bool, sequence: u32) {
        let frame = client.request(&submit(1, sequence, 1));
        let arrival = Arrival { interface: self.near.index, ..Arrival::new(&frame) };
        let (departure, counts) = counted(&mut self.shells, |shells| shells.run_tc(TIME, &arrival).unwrap());
        assert_eq!(counts, [("tc_taken", 1), ("tc_answered", 1), ("handed_over", 1)]);
        assert_eq!(operation(&read(&departure.frame).1), Operation::SubmitAck);
        let handed_over = self.handed_over();
        let [(own, to, datagram)] = &handed_over[..] else { panic!("{handed_over:?}") };
        assert_eq!((*own, *to), (learned.then_some(executor.to.ip()), executor.from));
        assert_eq!(operation(datagram), Operation::Assign);
        assert_eq!(self.sent(), [vec![], vec![]] as [Vec<Vec<u8>>; 2]);
    }

    fn ip(&self, arguments: &str) {
        let status = self.lab.command(Place::Switch, "ip").args(arguments.split(' ')).status().unwrap();
        assert!(status.success(), "ip {arguments}");
    }
}

fn is_of_switch(frame: &[u8]) -> bool {
    let mut at = 12;
    while [Q, AD].contains(&get16(frame, at)) {
        at += 4;
    }
    let udp = at + 2 + if get16(frame, at) == crate::frame::IPV4 { 20 } else { 40 };
    frame.len() >= udp + 8 && get16(frame, udp) == PORT
}

/// One datagram, with everything that XDP might have done: to its sender, longer and shorter.
#[test]
fn one_answer_is_the_packet_itself() {
    on_stage(|stage, ipv4| {
        for tags in [&[] as &[Tag], &[(Q, 0x2005)], &[(AD, 7), (Q, 8)]] {
            let flow = Flow { tags: tags.to_vec(), ..stage.client(ipv4) };
            for (datagram, answer) in [
                (probe(1, 1), Operation::ProbeAck),
                (register(2, 32), Operation::Registered),
                (submit(1, 1, 32), Operation::SubmitAck),
            ] {
                stage.shells.restart(&config(), EPOCH, 1).unwrap();
                let frame = flow.request(&datagram);
                let arrival = Arrival { interface: stage.near.index, ..Arrival::new(&frame) };
                let (departure, counts) = counted(&mut stage.shells, |shells| shells.run_tc(TIME, &arrival).unwrap());
                assert_eq!((departure.action, counts), (Action::Transmit, vec![("tc_taken", 1), ("tc_answered", 1)]));
                let (back, payload) = read(&departure.frame);
                assert_eq!((back, operation(&payload)), (flow.back(), answer));
                assert_eq!(departure.asked.unwrap().0, datagram);
            }
        }
        assert_eq!(stage.sent(), [vec![], vec![]] as [Vec<Vec<u8>>; 2]);
    });
}

#[test]
fn what_owes_nothing_is_dropped() {
    on_stage(|stage, ipv4| {
        let departure = stage.by_tc(&stage.client(ipv4), b"no packet of ours, but to our port");
        assert_eq!(departure.action, Action::Drop);
        assert_eq!(stage.shells.shell_count("tc_taken"), 1);
    });
}

/// From the address that the executor talks to, by the interface and to the MAC address that his last RETRIEVE came by.
#[test]
fn t6_a_task_goes_to_the_executor_by_the_way_that_his_retrieve_came() {
    on_stage(|stage, ipv4| {
        let second = if ipv4 { "192.0.2.9" } else { "2001:db8::9" }.parse().unwrap();
        stage.shells.serve(PORT, &[own(ipv4).ip(), second]);
        let executor = Flow { to: SocketAddr::new(second, PORT), ..stage.executor(ipv4, 1) };
        stage.park(&executor, 5, 3);
        let client = stage.client(ipv4);
        let departure = stage.by_tc(&client, &submit(1, 1, 3));
        let (back, payload) = read(&departure.frame);
        assert_eq!(
            (departure.action, back, operation(&payload)),
            (Action::Transmit, client.back(), Operation::SubmitAck)
        );
        let [near, far] = stage.sent();
        assert_eq!((near.len(), far.len()), (0, 1));
        let (to_executor, assign) = read(&far[0]);
        assert_eq!((to_executor, operation(&assign), records(&assign)), (executor.back(), Operation::Assign, 3));
        assert_eq!((stage.shells.stats().busy, stage.shells.shell_count("tc_answered")), (3, 2));
        stage.shells.serve(PORT, &[own(true).ip(), own(false).ip()]);
    });
}

/// The most that a datagram can owe: an answer, and 32 tasks to 32 executors. Who is waited for comes first.
#[test]
fn thirty_three_answers_leave_the_last_one_first() {
    on_stage(|stage, ipv4| {
        let executors: Vec<_> = (0..32).map(|number| stage.executor(ipv4, number)).collect();
        for (number, executor) in executors.iter().enumerate() {
            stage.park(executor, 10 + number as u64, 1);
        }
        let departure = stage.by_tc(&stage.client(ipv4), &submit(1, 1, 32));
        assert_eq!(operation(&read(&departure.frame).1), Operation::SubmitAck);
        let [near, far] = stage.sent();
        let to: Vec<_> = far.iter().map(|frame| read(frame).0.to).collect();
        let expected: Vec<_> = executors.iter().rev().map(|executor| executor.from).collect();
        assert_eq!((to, near.len()), (expected, 0));
    });
}

/// A datagram that owes several to its sender alone: a RETRIEVE of which one slot is void.
#[test]
fn several_answers_to_the_sender_go_back() {
    on_stage(|stage, ipv4| {
        let executor = Flow { from_mac: PEER_MAC, to_mac: stage.near.mac, ..stage.executor(ipv4, 1) };
        let names = registered(&read(&stage.by_tc(&executor, &register(2, 2)).frame).1);
        stage.by_tc(&stage.client(ipv4), &submit(1, 1, 2));
        let foreign = SlotName { slot: names[1].slot, generation: (names[1].generation.get() ^ 1).into() };
        let departure = stage.by_tc(&executor, &retrieve(&[names[0], foreign], 1));
        let [near, far] = stage.sent();
        assert_eq!((departure.action, near.len(), far.len()), (Action::Transmit, 1, 0));
        let ((first, assign), (second, reset)) = (read(&departure.frame), read(&near[0]));
        assert_eq!((first, second), (executor.back(), executor.back()));
        assert_eq!((operation(&assign), operation(&reset)), (Operation::Assign, Operation::Reset));
    });
}

#[test]
fn tags_are_kept_where_both_have_the_same_and_else_user_space_sends() {
    on_stage(|stage, ipv4| {
        let tagged = |flow: Flow, tags: &[Tag]| Flow { tags: tags.to_vec(), ..flow };
        let sets: [&[Tag]; 4] = [&[], &[(Q, 5)], &[(Q, 6)], &[(AD, 5), (Q, 6)]];
        for (a, of_client) in sets.into_iter().enumerate() {
            for (b, of_executor) in sets.into_iter().enumerate() {
                stage.shells.restart(&config(), EPOCH, 1).unwrap();
                let (client, executor) =
                    (tagged(stage.client(ipv4), of_client), tagged(stage.executor(ipv4, 1), of_executor));
                stage.park(&executor, 5, 1);
                if a == b {
                    stage.by_tc(&client, &submit(1, 1, 1));
                    assert_eq!(read(&stage.sent()[1][0]).0, executor.back());
                } else {
                    stage.assert_handed_over(&client, &executor, true, 1);
                }
            }
        }
    });
}

#[test]
fn where_the_families_differ_user_space_sends() {
    on_stage(|stage, ipv4| {
        let executor = stage.executor(!ipv4, 1);
        stage.park(&executor, 5, 1);
        stage.assert_handed_over(&stage.client(ipv4), &executor, true, 1);
    });
}

/// An executor whose datagrams come by the process's socket is reached as routes and neighbours say, if they may be asked and know;
/// else user space sends. The ways here are the lab's.
#[test]
fn where_no_way_was_learned_the_kernel_is_asked() {
    on_stage(|stage, ipv4| {
        let host = stage.lab.hosts()[1].clone();
        let (there, here): (IpAddr, IpAddr) =
            if ipv4 { (host.ipv4.into(), SWITCH_IPV4.into()) } else { (host.ipv6.into(), SWITCH_IPV6.into()) };
        stage.shells.serve(PORT, &[here]);
        let to = SocketAddr::new(here, PORT);
        let client = Flow { to, ..stage.client(ipv4) };
        let executor = Flow { to, from: SocketAddr::new(there, 4000), ..stage.executor(ipv4, 1) };
        let names = stage.park(&executor, 5, 8);
        let mut out = Out::new();
        // The same by the socket: what was learned is forgotten.
        stage.shells.packet(TIME, executor.from, &retrieve(&names, 2), &mut out).unwrap();
        assert_eq!((out.len(), stage.shells.stats().parked), (0, 8));
        let forwarding = |stage: &Stage<'_>, on: bool| {
            let name = if ipv4 { "net.ipv4.conf.host0.forwarding" } else { "net.ipv6.conf.host0.forwarding" };
            let setting = format!("{name}={}", u8::from(on));
            assert!(stage.lab.command(Place::Switch, "sysctl").args(["-qw", &setting]).status().unwrap().success());
        };
        // A way out that would go elsewhere, for what arrives by the neighbour's resolution.
        let _ =
            stage.lab.command(Place::Switch, "ip").args(["neigh", "del", &there.to_string(), "dev", "host1"]).status();
        stage.assert_handed_over(&client, &executor, false, 1);
        stage.ip(&format!("neigh replace {there} lladdr 02:fa:11:22:33:44 dev host1 nud permanent"));
        forwarding(stage, false);
        stage.assert_handed_over(&client, &executor, false, 2);
        forwarding(stage, true);
        let departure = stage.by_tc(&client, &submit(1, 3, 1));
        assert_eq!(operation(&read(&departure.frame).1), Operation::SubmitAck);
        let [near, far] = stage.sent();
        assert_eq!((near.len(), far.len()), (0, 1));
        assert_eq!((read(&far[0]).0, operation(&read(&far[0]).1)), (executor.back(), Operation::Assign));
        // Too long for the way: user space cuts it up.
        stage.ip("link set host1 mtu 1280");
        stage.by_tc(&client, &submit(1, 4, 5));
        assert_eq!(stage.handed_over().len(), 0, "five tasks are not too long");
        assert_eq!(stage.sent()[1].len(), 1);
        let more = stage.park(&Flow { from: SocketAddr::new(there, 4001), ..executor.clone() }, 6, 16);
        stage.shells.packet(TIME, SocketAddr::new(there, 4001), &retrieve(&more, 2), &mut out).unwrap();
        stage.by_tc(&client, &submit(1, 5, 16));
        let handed_over = stage.handed_over();
        assert_eq!((handed_over.len(), records(&handed_over[0].2)), (1, 16));
        stage.ip("link set host1 mtu 1500");
        stage.shells.serve(PORT, &[own(true).ip(), own(false).ip()]);
    });
}

/// A way that leads to an interface that is gone, and one that is not Midflight's to wait for: user space sends.
#[test]
fn where_the_way_is_gone_user_space_sends() {
    on_a_stage(|stage| {
        let executor = stage.executor(true, 1);
        stage.park(&executor, 5, 2);
        stage.ip("link set host1 down");
        stage.assert_handed_over(&stage.client(true), &executor, true, 1);
        stage.ip("link del host1");
        stage.assert_handed_over(&stage.client(true), &executor, true, 2);
    });
}

/// Answers that find the ring full are lost, and counted. T2: the executor who has not heard of his task asks again, and is told by
/// a frame. Others notice nothing, and the process takes what is there by pieces.
#[test]
fn a_full_ring_is_counted_and_nobody_waits_for_ever() {
    on_stage(|stage, ipv4| {
        let (executor, other) = (stage.executor(!ipv4, 1), stage.executor(ipv4, 2));
        let names = stage.park(&executor, 5, 1);
        let client = stage.client(ipv4);
        let mut sequence = 0;
        loop {
            sequence += 1;
            let departure = stage.by_tc(&client, &submit(1, sequence, 1));
            assert_eq!(operation(&read(&departure.frame).1), Operation::SubmitAck, "the client is told in any case");
            if stage.shells.shell_count("hand_over_failed") > 0 {
                break;
            }
            assert_eq!(stage.by_both(&executor, &retrieve(&names, sequence + 1)), None);
            assert!(sequence < 2_000, "the ring never fills");
        }
        let again = stage.by_both(&executor, &retrieve(&names, sequence)).expect("the task that was lost on its way");
        assert_eq!((operation(&again), records(&again)), (Operation::Assign, 1));
        stage.park(&other, 6, 1);
        stage.sent();
        stage.by_tc(&client, &submit(1, sequence + 1, 1));
        assert_eq!(read(&stage.sent()[1][0]).0, other.back());
        assert_eq!(stage.shells.shell_count("hand_over_failed"), 1);

        let mut handover = stage.shells.open_handover().unwrap();
        let (mut all, mut turns) = (0, 0);
        while is_readable(&handover) {
            handover.drain(|_, to, datagram| {
                assert_eq!((to, records(datagram)), (executor.from, 1));
                all += 1;
            });
            turns += 1;
            assert!(all <= 64 * turns, "{all} in {turns} turns");
        }
        assert_eq!(u64::from(all), stage.shells.shell_count("handed_over"));
        assert_eq!(all, sequence - 1);
    });
}

fn is_readable(file: &impl AsFd) -> bool {
    let mut asked = libc::pollfd { fd: file.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel reads and writes one structure, which outlives the call.
    unsafe { libc::poll(&raw mut asked, 1, 0) == 1 }
}

/// Of two slots of one socket, the older way is forgotten: the executor moved.
#[test]
fn an_executor_who_moves_is_followed() {
    on_stage(|stage, ipv4| {
        let before = stage.executor(ipv4, 1);
        let names = stage.park(&before, 5, 1);
        let after = Flow { from_mac: PEER_MAC, to_mac: OWN_MAC, ..before };
        assert_eq!(stage.by_both(&after, &retrieve(&names, 1)), None, "a repeat");
        stage.by_tc(&stage.client(ipv4), &submit(1, 1, 1));
        assert_eq!(read(&stage.sent()[1][0]).0, after.back());
    });
}

/// Who forges an executor's address, but does not know what his slots are called, does not get his tasks.
#[test]
fn a_forger_teaches_no_way() {
    on_stage(|stage, ipv4| {
        let executor = stage.executor(ipv4, 1);
        let names = stage.park(&executor, 5, 1);
        let forger = Flow { from_mac: PEER_MAC, ..executor.clone() };
        let guessed = SlotName { slot: names[0].slot, generation: (names[0].generation.get() ^ 1).into() };
        assert_eq!(operation(&stage.by_both(&forger, &retrieve(&[guessed], 2)).unwrap()), Operation::Reset);
        let mut of_another_epoch = retrieve(&names, 2);
        of_another_epoch[8] ^= 1;
        assert_eq!(operation(&stage.by_both(&forger, &of_another_epoch).unwrap()), Operation::Reset);
        assert_eq!(stage.by_both(&forger, &retrieve(&names, 2)[..16]), None, "cut off");
        stage.by_tc(&stage.client(ipv4), &submit(1, 1, 1));
        assert_eq!(read(&stage.sent()[1][0]).0, executor.back());
    });
}

/// The same by the process's socket, which a fragment of his may reach: what was learned stays. Only the executor himself, by that
/// way, makes it forgotten.
#[test]
fn a_forger_makes_no_way_forgotten() {
    on_stage(|stage, ipv4| {
        let executor = stage.executor(ipv4, 1);
        let names = stage.park(&executor, 5, 1);
        let guessed = SlotName { slot: names[0].slot, generation: (names[0].generation.get() ^ 1).into() };
        let (good, mut of_another_epoch) = (retrieve(&names, 1), retrieve(&names, 1));
        of_another_epoch[8] ^= 1;
        let mut out = Out::new();
        for forged in [&retrieve(&[guessed], 2)[..], &of_another_epoch, &good[..20], &good[..16]] {
            stage.shells.packet(TIME, executor.from, forged, &mut out).unwrap();
            assert_eq!(stage.shells.own_address(executor.from), Some(executor.to.ip()));
        }
        stage.shells.packet(TIME, executor.from, &good, &mut out).unwrap();
        assert_eq!(stage.shells.own_address(executor.from), None);
    });
}

/// As many executors as share a place in the table of ways, and more: none is mistaken for another.
#[test]
fn a_way_is_only_ever_that_of_its_executor() {
    on_a_stage(|stage| {
        let many = midflight_dataplane::TasksConfig { queue: 4096, slots: 4096, clients: 16, ..config() };
        stage.shells.restart(&many, EPOCH, 1).unwrap();
        let executor = |number: u16| {
            let from = SocketAddr::from(([198, 51, 100, (number % 200) as u8], 1000 + number));
            let mac = [0x02, 0, 0, 0, (number >> 8) as u8, number as u8];
            Flow { from, from_mac: mac, to_mac: stage.far.mac, ..flow(true, 0) }
        };
        let all: Vec<_> = (0..2_000).map(executor).collect();
        for (number, flow) in all.iter().enumerate() {
            stage.park(flow, 1_000 + number as u64, 1);
        }
        let client = stage.client(true);
        for sequence in 1..=63 {
            stage.by_tc(&client, &submit(1, sequence, 32));
        }
        let mut reached = stage.sent()[1].iter().map(|frame| read(frame).0).collect::<Vec<_>>();
        reached.sort_by_key(|flow| flow.to.port());
        assert_eq!(stage.shells.shell_count("handed_over"), 0);
        assert_eq!(reached.len(), 2_000);
        assert!(reached.iter().zip(&all).all(|(reached, executor)| *reached == executor.back()));
    });
}

/// Nobody can choose addresses that take the places of others in the table of ways: neither such whose parts cancel out, nor such
/// that would be neighbours by another salt.
#[test]
fn ways_cannot_be_aimed_at() {
    on_a_stage(|stage| {
        let known = |stage: &mut Stage<'_>, addresses: &[SocketAddr]| {
            stage.shells.restart(&config(), EPOCH, 0x5eed_0fa5_a170_0001).unwrap();
            let executor = |from: SocketAddr| Flow { from, ..stage.executor(from.is_ipv4(), 0) };
            let flows: Vec<_> = addresses.iter().map(|&from| executor(from)).collect();
            for (number, flow) in flows.iter().enumerate() {
                stage.park(flow, 1_000 + number as u64, 1);
            }
            flows.iter().filter(|flow| stage.shells.own_address(flow.from) == Some(flow.to.ip())).count()
        };
        let by_sum = |step: u32| {
            let of = |port: u16| {
                let low = 0x0123_4567_89ab_cdef_u64.wrapping_sub(u64::from(port.swap_bytes()) << step);
                let ip = [0x2001_0db8_0000_0007_u64.to_be_bytes(), low.to_le_bytes()].concat();
                SocketAddr::new(bytes::<16>(&ip, 0).into(), port)
            };
            (4_000..4_064).map(of).collect::<Vec<_>>()
        };
        for step in [0, 16] {
            assert_eq!(known(stage, &by_sum(step)), 64, "in steps of 2^{step}");
        }
        for salt in [0, 1, u64::MAX] {
            let all = (0..=u32::MAX).map(|number| SocketAddr::from(((0x0b00_0000 | number).to_be_bytes(), 4_000)));
            let neighbours: Vec<_> = all.filter(|&address| place_by(salt, address) == 0).take(64).collect();
            assert_eq!(known(stage, &neighbours), 64, "salt {salt}");
        }
    });
}

/// `way_hash` of `dataplane/xdp/ways.h`, by a salt that is guessed, for addresses of IPv4.
fn place_by(salt: u64, address: SocketAddr) -> u64 {
    let mix = |x: u64| {
        let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    };
    let IpAddr::V4(ip) = address.ip() else { panic!("{address}") };
    let low = u64::from(u32::from_le_bytes(ip.octets())) << 32 | 0xffff_0000;
    let port = u64::from(address.port().swap_bytes()).wrapping_mul(salt | 1);
    mix(mix(salt).wrapping_add(low).wrapping_add(port)) % 16_384
}

#[test]
fn what_is_for_another_machine_or_was_merged_is_left_alone() {
    on_stage(|stage, ipv4| {
        let other = Flow { to_mac: [0x02, 9, 9, 9, 9, 9], ..stage.client(ipv4) };
        let frame = other.request(&probe(1, 1));
        let untouched = |frame: &[u8]| Departure { action: Action::Pass, frame: frame.to_vec(), asked: None };
        assert_eq!(stage.by_tc(&other, &probe(1, 1)), untouched(&frame));
        let frame = stage.client(ipv4).request(&probe(1, 1));
        let merged = Arrival { merged: 8, interface: stage.near.index, ..Arrival::new(&frame) };
        let (departure, counts) = counted(&mut stage.shells, |shells| shells.run_tc(TIME, &merged).unwrap());
        assert_eq!((departure, counts), (untouched(&frame), vec![("passed_merged", 1)]));
    });
}

/// The whole payload, and no more, is read also where an answer was longer than the packet.
#[test]
fn every_length_arrives_whole() {
    on_stage(|stage, ipv4| {
        for length in (0..=PACKET_MAX).step_by(7).chain([PACKET_MAX]) {
            let payload: Vec<u8> = (0..length).map(|i| (i * 11 + length) as u8).collect();
            let departure = stage.by_tc(&stage.client(ipv4), &payload);
            assert_eq!((departure.action, departure.asked.unwrap().0), (Action::Drop, payload));
        }
        let mut wrong = stage.client(ipv4).request(&probe(1, 1));
        put16(&mut wrong, stage.client(ipv4).l4() + 10, 7);
        let arrival = Arrival { interface: stage.near.index, ..Arrival::new(&wrong) };
        assert_eq!(stage.shells.run_tc(TIME, &arrival).unwrap().action, Action::Pass);
    });
}

/// A sum that an interface made over the packet does not outlive it. TC answers such a packet only once the kernel has forgotten
/// that there is a sum; `BPF_PROG_RUN` looks at the number nevertheless, and finds another packet than it was of. Had TC passed
/// the packet on, the number would be right.
#[test]
fn a_sum_by_hardware_is_forgotten_before_an_answer() {
    on_stage(|stage, ipv4| {
        let mut frame = stage.client(ipv4).request(&probe(1, 1));
        let summed = |frame: &[u8], stage: &mut Stage<'_>| {
            let arrival = Arrival { summed: true, interface: stage.near.index, ..Arrival::new(frame) };
            stage.shells.run_tc(TIME, &arrival)
        };
        let error = summed(&frame, stage).unwrap_err().to_string();
        assert!(error.contains("Bad message"), "{error}");
        assert_eq!(stage.shells.shell_count("tc_answered"), 1);
        put16(&mut frame, stage.client(ipv4).l4() + 2, PORT + 1);
        assert_eq!(summed(&frame, stage).unwrap().action, Action::Pass);
    });
}
