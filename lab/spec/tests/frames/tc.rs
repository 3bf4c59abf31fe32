//! What TC accepts, and where its answers leave.

use crate::cookies::with_cookie;
use crate::datagrams::{
    EPOCH, keepalive_of_another_epoch, of_another_version, operation, probe, records, register, registered, retrieve,
    submit,
};
use crate::frame::{AD, Flow, Q, Tag, put16, read};
use crate::shells::{PEER_MAC, PORT, SECRET, TIME, config, counted, forward, own};
use crate::stage::{Stage, on_a_stage, on_stage};
use midflight_dataplane::Out;
use midflight_dataplane::kernel::{Action, Arrival, Departure};
use midflight_net::{Place, SWITCH_IPV4, SWITCH_IPV6};
use midflight_wire::tasks::{Operation, SLOTS_MAX, SlotName, parse};
use midflight_wire::{PACKET_MAX, VERSION_OPERATION};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

/// One datagram of each case that XDP could have handled: to its sender, longer and shorter.
#[test]
fn one_answer_is_the_packet_itself() {
    on_stage(|stage, ipv4| {
        for tags in [&[] as &[Tag], &[(Q, 0x2005)], &[(AD, 7), (Q, 8)]] {
            let flow = Flow { tags: tags.to_vec(), ..stage.client(ipv4) };
            for (datagram, answer) in [
                (probe(1, 1), Operation::ProbeAck as u8),
                (register(2, 32), Operation::Registered as u8),
                (submit(1, 1, 32), Operation::SubmitAck as u8),
                (of_another_version(8), VERSION_OPERATION),
                (of_another_version(PACKET_MAX), VERSION_OPERATION),
            ] {
                let datagram = with_cookie(flow.from, datagram);
                stage.shells.restart(&config(), EPOCH, SECRET).unwrap();
                let (departure, counts) = stage.tc(&flow.request(&datagram));
                assert_eq!((departure.action, counts), (Action::Transmit, vec![("tc_taken", 1), ("tc_answered", 1)]));
                let (back, payload) = read(&departure.frame);
                assert_eq!((back, payload[3]), (flow.back(), answer));
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

/// From the address that the executor uses, by the interface and to the MAC address of its last RETRIEVE.
#[test]
fn t6_a_task_goes_to_the_executor_where_its_retrieve_came_from() {
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

/// The most that a datagram can owe: an answer, and 32 tasks to 32 executors. The longest wait comes first.
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

/// A datagram that owes several answers to its sender alone: a RETRIEVE with one void slot.
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
                stage.shells.restart(&config(), EPOCH, SECRET).unwrap();
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

/// A client and an executor that use a lab address of the switch, with routes to the executor.
fn routed(stage: &mut Stage<'_>, ipv4: bool) -> (Flow, Flow) {
    let host = stage.lab.hosts()[1].clone();
    let (there, here): (IpAddr, IpAddr) =
        if ipv4 { (host.ipv4.into(), SWITCH_IPV4.into()) } else { (host.ipv6.into(), SWITCH_IPV6.into()) };
    stage.shells.serve(PORT, &[here]);
    let to = SocketAddr::new(here, PORT);
    let executor = Flow { to, from: SocketAddr::new(there, 4000), ..stage.executor(ipv4, 1) };
    (Flow { to, ..stage.client(ipv4) }, executor)
}

fn know_neighbour(stage: &Stage<'_>, neighbour: &Flow) {
    stage.ip(&format!("neigh replace {} lladdr 02:fa:11:22:33:44 dev host1 nud permanent", neighbour.from.ip()));
}

/// Slots retrieve through the process's socket, so their executor's next hop is forgotten.
fn wait_by_socket(stage: &mut Stage<'_>, executor: &Flow, names: &[SlotName], sequence: u32) {
    let mut out = Out::new();
    stage.shells.packet(TIME, executor.from, &retrieve(names, sequence), &mut out).unwrap();
    assert_eq!((out.len(), stage.shells.stats().parked), (0, names.len() as u32));
}

/// An executor whose datagrams come through the process's socket is reached by the kernel's routes and neighbours if
/// forwarding is allowed and they are known. Otherwise user space sends. The routes are the lab's.
#[test]
fn where_no_next_hop_was_learned_the_kernel_is_asked() {
    on_stage(|stage, ipv4| {
        let (client, executor) = routed(stage, ipv4);
        let names = stage.park(&executor, 5, 8);
        wait_by_socket(stage, &executor, &names, 2);
        let neighbour = executor.from.ip().to_string();
        let _ = stage.lab.command(Place::Switch, "ip").args(["neigh", "del", &neighbour, "dev", "host1"]).status();
        stage.assert_handed_over(&client, &executor, false, 1);
        know_neighbour(stage, &executor);
        forward(stage.lab, ipv4, false);
        stage.assert_handed_over(&client, &executor, false, 2);
        forward(stage.lab, ipv4, true);
        let departure = stage.by_tc(&client, &submit(1, 3, 1));
        assert_eq!(operation(&read(&departure.frame).1), Operation::SubmitAck);
        let [near, far] = stage.sent();
        assert_eq!((near.len(), far.len()), (0, 1));
        assert_eq!((read(&far[0]).0, operation(&read(&far[0]).1)), (executor.back(), Operation::Assign));
        stage.shells.serve(PORT, &[own(true).ip(), own(false).ip()]);
    });
}

/// The longest answer fits the minimum MTU of IPv6. On a narrower IPv4 path, user space fragments it.
#[test]
fn t15_the_longest_answer_passes_a_link_of_1280_bytes() {
    on_stage(|stage, ipv4| {
        let (client, executor) = routed(stage, ipv4);
        know_neighbour(stage, &executor);
        forward(stage.lab, ipv4, true);
        stage.ip("link set host1 mtu 1280");
        let names = stage.park(&executor, 5, SLOTS_MAX as u8);
        wait_by_socket(stage, &executor, &names, 2);
        stage.by_tc(&client, &submit(1, 1, SLOTS_MAX as u32));
        let far = &stage.sent()[1];
        assert_eq!((far.len(), records(&read(&far[0]).1), stage.handed_over().len()), (1, SLOTS_MAX as u8, 0));
        if ipv4 {
            stage.ip(&format!("route replace {} dev host1 mtu lock 1000", executor.from.ip()));
            wait_by_socket(stage, &executor, &names, 3);
            stage.by_tc(&client, &submit(1, 2, SLOTS_MAX as u32));
            let handed_over = stage.handed_over();
            assert_eq!((handed_over.len(), records(&handed_over[0].2)), (1, SLOTS_MAX as u8));
            assert!(parse(&handed_over[0].2).is_ok(), "whole, to the end");
        }
        stage.ip("link set host1 mtu 1500");
        stage.shells.serve(PORT, &[own(true).ip(), own(false).ip()]);
    });
}

/// If the next hop's interface is down or gone, user space sends.
#[test]
fn where_the_next_hop_is_gone_user_space_sends() {
    on_a_stage(|stage| {
        let executor = stage.executor(true, 1);
        stage.park(&executor, 5, 2);
        stage.ip("link set host1 down");
        stage.assert_handed_over(&stage.client(true), &executor, true, 1);
        stage.ip("link del host1");
        stage.assert_handed_over(&stage.client(true), &executor, true, 2);
    });
}

/// Answers that find the ring full are lost and counted. The executor that missed its task asks again and is answered
/// by a frame. Others notice nothing, and the process drains the ring piece by piece.
#[test]
fn t2_a_full_ring_is_counted_and_nobody_waits_for_ever() {
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

#[test]
fn what_is_for_another_machine_or_was_merged_is_left_alone() {
    on_stage(|stage, ipv4| {
        let other = Flow { to_mac: [0x02, 9, 9, 9, 9, 9], ..stage.client(ipv4) };
        let frame = other.request(&keepalive_of_another_epoch());
        let untouched = |frame: &[u8]| Departure { action: Action::Pass, frame: frame.to_vec(), asked: None };
        assert_eq!(stage.tc(&frame).0, untouched(&frame));
        let frame = stage.client(ipv4).request(&probe(1, 1));
        let merged = Arrival { merged: 8, interface: stage.near.index, ..Arrival::new(&frame) };
        let (departure, counts) = counted(&mut stage.shells, |shells| shells.run_tc(TIME, &merged).unwrap());
        assert_eq!((departure, counts), (untouched(&frame), vec![("passed_merged", 1)]));
    });
}

/// All of the payload, and no more, is read even if an earlier answer was longer than the packet.
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
        assert_eq!(stage.tc(&wrong).0.action, Action::Pass);
    });
}

/// A checksum that hardware computed over the packet must not outlive it. TC answers only once the kernel has dropped
/// it; `BPF_PROG_RUN` checks it nevertheless, and finds that it no longer fits. If TC had passed the packet on, it
/// would fit.
#[test]
fn a_sum_by_hardware_is_forgotten_before_an_answer() {
    on_stage(|stage, ipv4| {
        // The answer is longer; otherwise it would have the same sum, which swapped addresses and ports do not change.
        let client = stage.client(ipv4);
        let mut frame = client.request(&with_cookie(client.from, probe(1, 1)));
        let summed = |frame: &[u8], stage: &mut Stage<'_>| {
            let arrival = Arrival { summed: true, interface: stage.near.index, ..Arrival::new(frame) };
            stage.shells.run_tc(TIME, &arrival)
        };
        let error = summed(&frame, stage).unwrap_err().to_string();
        assert!(error.contains("Bad message"), "{error}");
        assert_eq!(stage.shells.shell_count("tc_answered"), 1);
        put16(&mut frame, client.l4() + 2, PORT + 1);
        assert_eq!(summed(&frame, stage).unwrap().action, Action::Pass);
    });
}
