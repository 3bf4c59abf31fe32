//! What XDP accepts, and how it answers.

use crate::cookies::{cookie, put_cookie, with_cookie};
use crate::datagrams::{self, of_another_version, operation, probe, question, register, registered, retrieve, submit};
use crate::frame::{AD, Flow, LEAST, Q, Tag, hex, put16};
use crate::shells::{NO_MAC, SECRET, TIME, by_both, counted, flow, handed_over, shells};
use midflight_dataplane::XdpMode;
use midflight_dataplane::kernel::{Action, Arrival, Departure, KernelTasks};
use midflight_dataplane::{Out, Tasks, Verdict};
use midflight_wire::tasks::{Operation, SLOTS_MAX};
use midflight_wire::{PACKET_MAX, Version};
use zerocopy::IntoBytes;

const TAGS: [&[Tag]; 4] = [&[], &[(Q, 0x2005)], &[(AD, 0x0fff), (Q, 1)], &[(Q, 7), (Q, 0xe064)]];

fn run(tasks: &mut KernelTasks, frame: &[u8]) -> Departure<Verdict> {
    tasks.run_xdp(TIME, &Arrival::new(frame)).unwrap()
}

/// The soft engine in this process, whose answers the kernel programs must match.
fn native() -> Tasks {
    Tasks::new(&crate::shells::config(), datagrams::EPOCH, SECRET).unwrap()
}

fn native_answer(native: &mut Tasks, flow: &Flow, datagram: &[u8]) -> (Verdict, Option<Vec<u8>>) {
    let mut out = Out::new();
    let verdict = native.take(TIME, flow.from, &mut datagram.to_vec(), &mut out);
    assert!(out.len() <= 1);
    let answer = out.iter().next().map(|(to, answer)| {
        assert_eq!(to, flow.from);
        answer.to_vec()
    });
    (verdict, answer)
}

/// Addresses and ports exchanged, tags kept, headers and checksums correct.
#[test]
fn an_answer_is_the_frame_turned_round() {
    let Some(mut shells) = shells() else { return };
    for (number, tags) in TAGS.into_iter().enumerate() {
        for ipv4 in [true, false] {
            let flow = Flow { tags: tags.to_vec(), ..flow(ipv4, number as u16) };
            let datagram = with_cookie(flow.from, probe(u64::from(ipv4), 5));
            let (departure, counts) = counted(&mut shells, |shells| run(shells, &flow.request(&datagram)));
            let (_, answer) = native_answer(&mut native(), &flow, &datagram);
            assert_eq!(operation(answer.as_ref().unwrap()), Operation::ProbeAck);
            assert_eq!(hex(&departure.frame), hex(&flow.back().answer(&answer.unwrap())), "{flow:?}");
            assert_eq!((departure.action, departure.asked), (Action::Transmit, Some((datagram, Verdict::Ok))));
            assert_eq!(counts, [("xdp_taken", 1), ("xdp_answered", 1)]);
        }
    }
}

/// The shortest answer is shorter than the shortest frame; the padding is zeros, whatever the request had there.
#[test]
fn a_short_answer_is_filled_up() {
    by_both(|shells, ipv4| {
        for tags in TAGS {
            for length in [8, 10, 24, 40, PACKET_MAX] {
                let flow = Flow { tags: tags.to_vec(), ..flow(ipv4, 0) };
                let datagram = of_another_version(length);
                let mut frame = flow.request(&datagram);
                frame[flow.l4() + 8 + length..].fill(0xee);
                frame.resize(frame.len().max(90), 0xee); // padding after the datagram
                let (departure, counts) = counted(shells, |shells| run(shells, &frame));
                assert_eq!((departure.action, counts), (Action::Transmit, vec![("xdp_taken", 1), ("xdp_answered", 1)]));
                assert_eq!(departure.asked, Some((datagram, Verdict::BadVersion)));
                assert_eq!(hex(&departure.frame), hex(&flow.back().answer(Version::OURS.as_bytes())), "{flow:?}");
                assert_eq!(departure.frame.len(), LEAST.max(flow.l4() + 8 + 8));
            }
        }
    });
}

/// A sender without a valid cookie gets its cookie through the socket: a reflected frame would reach a forger on the
/// same link. Nothing is recorded until the sender repeats the cookie.
#[test]
fn t13_a_cookie_is_given_without_a_record() {
    let Some(mut shells) = shells() else { return };
    handed_over(&shells); // from an earlier test
    for ipv4 in [true, false] {
        for (number, tags) in TAGS.into_iter().enumerate() {
            let flow = Flow { tags: tags.to_vec(), ..flow(ipv4, number as u16) };
            for (datagram, records) in [(probe(1, 9), 0), (submit(1, 9, 1), 1), (register(1, 1), 1)] {
                shells.restart(&crate::shells::config(), datagrams::EPOCH, SECRET).unwrap();
                let of_all = |shells: &KernelTasks| shells.stats().clients + shells.stats().slots;
                let departure = run(&mut shells, &flow.request(&datagram));
                let (_, answer) = native_answer(&mut native(), &flow, &datagram);
                let answer = answer.unwrap();
                assert_eq!(operation(&answer), Operation::Cookie);
                assert_eq!((departure.action, shells.shell_count("handed_over")), (Action::Drop, 1));
                assert_eq!(handed_over(&shells), [(Some(flow.to.ip()), flow.from, answer.clone())]);
                assert_eq!((departure.asked, of_all(&shells)), (Some((datagram.clone(), Verdict::NoCookie)), 0));
                let mut repeated = datagram;
                put_cookie(&mut repeated, cookie(&answer));
                let departure = run(&mut shells, &flow.request(&repeated));
                assert_eq!((departure.asked, of_all(&shells)), (Some((repeated, Verdict::Ok)), records));
            }
        }
    }
}

#[test]
fn a_long_answer_makes_the_frame_longer() {
    by_both(|shells, ipv4| {
        let mut native = native();
        shells.restart(&crate::shells::config(), datagrams::EPOCH, SECRET).unwrap();
        let (client, executor) = (flow(ipv4, 1), flow(ipv4, 2));
        let mut ask = |flow: &Flow, datagram: Vec<u8>| {
            let datagram = with_cookie(flow.from, datagram);
            let departure = run(shells, &flow.request(&datagram));
            let (verdict, answer) = native_answer(&mut native, flow, &datagram);
            assert_eq!(departure.asked, Some((datagram, verdict)));
            let answer = answer.expect("each of these is answered");
            assert_eq!(departure.action, Action::Transmit);
            assert_eq!(hex(&departure.frame), hex(&flow.back().answer(&answer)));
            answer
        };
        for sequence in 1..=2 {
            ask(&client, submit(1, sequence, 32));
        }
        let names = registered(&ask(&executor, register(3, 32)));
        let (most, other) = (&names[..SLOTS_MAX], &names[SLOTS_MAX..=SLOTS_MAX]);
        // The first wait of a slot may get more than one datagram unless it is alone.
        for name in most {
            ask(&executor, retrieve(std::slice::from_ref(name), 1));
        }
        let assigned = ask(&executor, retrieve(most, 2));
        assert_eq!((operation(&assigned), datagrams::records(&assigned)), (Operation::Assign, SLOTS_MAX as u8));
        let assigned = ask(&executor, retrieve(other, 1));
        assert_eq!((operation(&assigned), datagrams::records(&assigned)), (Operation::Assign, 1));
    });
}

#[test]
fn what_owes_nothing_is_dropped_and_what_may_owe_several_is_left_to_tc() {
    by_both(|shells, ipv4| {
        shells.restart(&crate::shells::config(), datagrams::EPOCH, SECRET).unwrap();
        let (client, executor) = (flow(ipv4, 1), flow(ipv4, 2));
        let departure = run(shells, &executor.request(&with_cookie(executor.from, register(3, 2))));
        let names = registered(&crate::frame::read(&departure.frame).1);
        for name in &names {
            let parks = executor.request(&retrieve(std::slice::from_ref(name), 1));
            let (departure, counts) = counted(shells, |shells| run(shells, &parks));
            assert_eq!((departure.action, counts), (Action::Drop, vec![("xdp_taken", 1)]));
        }
        assert_eq!(shells.stats().parked, 2);
        let frame = client.request(&submit(1, 1, 1));
        let (departure, counts) = counted(shells, |shells| run(shells, &frame));
        assert_eq!(departure, Departure { action: Action::Pass, frame, asked: None });
        assert_eq!(counts, []);
        assert_eq!((shells.stats().parked, shells.stats().tasks.submitted), (2, 0));
    });
}

/// Datagrams of every length and content: the core gets exactly them, and the checksum covers all.
#[test]
fn every_length_arrives_whole() {
    let Some(mut shells) = shells() else { return };
    for ipv4 in [true, false] {
        let flow = flow(ipv4, 0);
        for length in 0..=PACKET_MAX {
            let payload: Vec<u8> = (0..length).map(|i| (i * 7 + length * 13) as u8 | 0x80).collect();
            let departure = run(&mut shells, &flow.request(&payload));
            let said = if length < size_of::<Version>() { Verdict::Truncated } else { Verdict::BadMagic };
            assert_eq!((departure.action, departure.asked), (Action::Drop, Some((payload, said))));
        }
    }
    assert_eq!(shells.shell_count("xdp_taken"), 2 * (1 + PACKET_MAX as u64));
}

/// A frame with a flipped bit under its checksums is not accepted; other bits do not matter to the switch.
#[test]
fn a_flipped_bit_is_noticed_wherever_it_is() {
    let Some(mut shells) = shells() else { return };
    for ipv4 in [true, false] {
        let flow = Flow { tags: vec![(Q, 3)], ..flow(ipv4, 0) };
        let good = flow.request(&question(1, 1));
        for byte in flow.l3()..good.len() {
            for bit in 0..8 {
                let mut frame = good.clone();
                frame[byte] ^= 1 << bit;
                let (departure, counts) = counted(&mut shells, |shells| run(shells, &frame));
                let at = format!("IPv{}, byte {byte}, bit {bit}", if ipv4 { 4 } else { 6 });
                let place = byte - flow.l3();
                // Of IPv6: traffic class, flow label, hop limit.
                if !ipv4 && (place == 0 && bit < 4 || (1..4).contains(&place) || place == 7) {
                    assert_eq!(departure.action, Action::Transmit, "{at}");
                    continue;
                }
                assert_eq!(departure, Departure { action: Action::Pass, frame, asked: None }, "{at}");
                if byte >= flow.l4() + 4 {
                    assert!(counts == [("passed_checksum", 1)] || counts == [("passed_length", 1)], "{at}: {counts:?}");
                }
            }
        }
    }
}

#[test]
fn a_checksum_may_be_absent_in_ipv4_only() {
    let Some(mut shells) = shells() else { return };
    for (ipv4, action) in [(true, Action::Transmit), (false, Action::Pass)] {
        let flow = flow(ipv4, 0);
        let mut frame = flow.request(&question(1, 1));
        put16(&mut frame, flow.l4() + 6, 0);
        let (departure, counts) = counted(&mut shells, |shells| run(shells, &frame));
        assert_eq!(departure.action, action);
        assert_eq!(counts[0].0, if ipv4 { "xdp_taken" } else { "passed_checksum" });
        if ipv4 {
            crate::frame::read(&departure.frame); // the answer has one
        }
    }
}

/// If the sender left its checksum to missing hardware, XDP answers with a complete one. Otherwise, and in generic
/// mode, where hardware would corrupt the answer's checksum, it leaves the frame to TC.
#[test]
fn a_checksum_may_be_left_to_hardware_where_there_is_none() {
    by_both(|shells, ipv4| {
        let flow = flow(ipv4, 0);
        let frame = flow.partial(flow.request(&question(1, 1)), &question(1, 1));
        let left_alone = Departure { action: Action::Pass, frame: frame.clone(), asked: None };
        let all: Vec<u32> = (2..=64).chain([1]).collect();
        for (unsummed, taken) in [(&[][..], false), (&[1], true), (&[2, 3], false), (&[2, 1], true), (&all, true)] {
            shells.set_mode(XdpMode::Native, unsummed);
            let (departure, counts) = counted(shells, |shells| run(shells, &frame));
            if taken {
                assert_eq!((departure.action, counts[0]), (Action::Transmit, ("xdp_taken", 1)), "{unsummed:?}");
                assert_eq!(crate::frame::read(&departure.frame).0, flow.back());
            } else {
                assert_eq!((departure, counts), (left_alone.clone(), vec![]), "{unsummed:?}");
            }
        }
        shells.set_mode(XdpMode::Generic, &[1]);
        let (departure, counts) = counted(shells, |shells| run(shells, &frame));
        assert_eq!((departure, counts), (left_alone, vec![]));
        assert_eq!(run(shells, &flow.request(&question(1, 1))).action, Action::Transmit);
    });
}

/// TC asks the kernel whether hardware is to complete a checksum. A frame that only looks so is refused and counted.
#[test]
fn a_sum_of_the_pseudo_header_is_no_checksum() {
    by_both(|shells, ipv4| {
        let flow = Flow { to_mac: NO_MAC, ..flow(ipv4, 0) };
        let frame = flow.partial(flow.request(&question(1, 1)), &question(1, 1));
        for unsummed in [&[][..], &[1]] {
            shells.set_mode(XdpMode::Native, unsummed);
            let (departure, counts) = counted(shells, |shells| shells.run_tc(TIME, &Arrival::new(&frame)).unwrap());
            let left_alone = Departure { action: Action::Pass, frame: frame.clone(), asked: None };
            assert_eq!((departure, counts), (left_alone, vec![("passed_checksum", 1)]));
        }
    });
}

/// The sum of the pseudo-header may happen to be a complete checksum. In generic mode only TC can tell; XDP's wrong
/// guess would repeat forever with a repeated datagram.
#[test]
fn a_checksum_may_be_both() {
    by_both(|shells, ipv4| {
        let flow = Flow { to_mac: NO_MAC, ..flow(ipv4, 0) };
        let is_both = |sequence: &u32| {
            let datagram = with_cookie(flow.from, probe(1, *sequence));
            let frame = flow.request(&datagram);
            frame == flow.partial(frame.clone(), &datagram)
        };
        let sequence = (1..200_000).find(is_both).expect("one of 65,536 is");
        let frame = flow.request(&with_cookie(flow.from, probe(1, sequence)));
        for (mode, by_xdp) in [(XdpMode::Native, Action::Transmit), (XdpMode::Generic, Action::Pass)] {
            shells.set_mode(mode, &[]);
            assert_eq!(run(shells, &frame).action, by_xdp);
            let by_tc = shells.run_tc(TIME, &Arrival::new(&frame)).unwrap();
            assert_eq!((by_tc.action, by_tc.asked.unwrap().1), (Action::Transmit, Verdict::Ok));
        }
    });
}

/// Written as 0xffff, because 0 means no checksum.
#[test]
fn a_checksum_of_zero_is_written_as_ones() {
    let Some(mut shells) = shells() else { return };
    let ends_in_ones = |ipv4: bool, sequence: u32| {
        let flow = flow(ipv4, 0);
        let (_, answer) = native_answer(&mut native(), &flow, &question(1, sequence));
        let frame = flow.back().answer(&answer.unwrap());
        (frame[flow.l4() + 6..flow.l4() + 8] == [0xff, 0xff]).then_some(sequence)
    };
    for ipv4 in [true, false] {
        let sequence = (1..200_000).find_map(|sequence| ends_in_ones(ipv4, sequence)).expect("one of 65,536 does");
        let flow = flow(ipv4, 0);
        let departure = run(&mut shells, &flow.request(&question(1, sequence)));
        crate::frame::read(&departure.frame);
        assert_eq!(departure.frame[flow.l4() + 6..flow.l4() + 8], [0xff, 0xff]);
    }
}

/// Each of many addresses, at any position in the list.
#[test]
fn each_served_address_is_answered_from() {
    let Some(mut shells) = shells() else { return };
    let addresses: Vec<_> = (1..=32u8)
        .flat_map(|n| [std::net::IpAddr::from([198, 51, 100, n]), format!("2001:db8::{n}:1").parse().unwrap()])
        .collect();
    assert_eq!(shells.serve(crate::shells::PORT, &addresses), 0);
    for &address in &addresses {
        let to = std::net::SocketAddr::new(address, crate::shells::PORT);
        let flow = Flow { to, ..flow(address.is_ipv4(), 0) };
        let departure = run(&mut shells, &flow.request(&question(1, 1)));
        assert_eq!(crate::frame::read(&departure.frame).0, flow.back());
    }
    for ipv4 in [true, false] {
        assert_eq!(run(&mut shells, &flow(ipv4, 0).request(&question(1, 1))).action, Action::Pass);
    }
}
