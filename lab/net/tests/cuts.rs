//! Faults on the links of a lab: cuts, duplicates, delays. Needs root and iproute2; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{about, lab};
use midflight_net::testing::skip;
use midflight_net::{Disorder, Lab, LabError, Loss, Place, SWITCH_IPV4, SWITCH_IPV6, Way};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

fn sockets(lab: &Lab, place: Place) -> [UdpSocket; 2] {
    let addresses: [IpAddr; 2] = match place {
        Place::Switch => [SWITCH_IPV4.into(), SWITCH_IPV6.into()],
        Place::Host(number) => [lab.hosts()[number].ipv4.into(), lab.hosts()[number].ipv6.into()],
        Place::Rack(number) => [lab.racks()[number].ipv4.into(), lab.racks()[number].ipv6.into()],
    };
    addresses.map(|address| {
        let socket = lab.within(place, || UdpSocket::bind((address, 0)).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        socket
    })
}

/// Of both families or of neither. The first datagram to a new neighbour may be lost.
fn passes(from: &[UdpSocket; 2], to: &[UdpSocket; 2]) -> bool {
    let arrives = |(from, to): (&UdpSocket, &UdpSocket)| {
        (0..2).any(|_| {
            from.send_to(b"hello", to.local_addr().unwrap()).unwrap();
            to.recv_from(&mut [0; 16]).is_ok()
        })
    };
    let arrived: Vec<_> = from.iter().zip(to).map(arrives).collect();
    assert_eq!(arrived[0], arrived[1], "IPv4 and IPv6");
    arrived[0]
}

#[test]
fn a_cut_link_drops_what_it_is_to_drop_and_nothing_else() {
    let Some(lab) = lab(3) else { return };
    let places = [Place::Host(0), Place::Host(1), Place::Host(2), Place::Switch];
    let [ours, theirs, others, switch] = places.map(|place| sockets(&lab, place));
    let seen = || {
        // From the cut host, then to it: host1, host2, switch.
        let there = [&theirs, &others, &switch];
        (there.map(|other| passes(&ours, other)), there.map(|other| passes(other, &ours)))
    };
    assert_eq!(seen(), ([true; 3], [true; 3]));
    for (way, peer, expected) in [
        (Way::Both, None, ([false; 3], [false; 3])),
        (Way::ToHost, None, ([true; 3], [false; 3])),
        (Way::FromHost, None, ([false; 3], [true; 3])),
        (Way::Both, Some(Place::Switch), ([true, true, false], [true, true, false])),
        (Way::ToHost, Some(Place::Host(1)), ([true; 3], [false, true, true])),
        (Way::FromHost, Some(Place::Host(2)), ([true, false, true], [true; 3])),
    ] {
        match lab.cut(0, way, peer) {
            Err(why @ LabError::NoLoss { .. }) => return skip(why),
            done => done.unwrap(),
        }
        assert_eq!(seen(), expected, "{way:?} {peer:?}");
        lab.mend(0).unwrap();
        assert_eq!(seen(), ([true; 3], [true; 3]), "mended");
    }
    lab.cut(0, Way::ToHost, Some(Place::Host(1))).unwrap();
    lab.cut(0, Way::ToHost, Some(Place::Host(2))).unwrap();
    assert_eq!(seen().1, [false, false, true], "cuts add up");
    assert!(matches!(lab.cut(0, Way::Both, Some(Place::Host(3))), Err(LabError::NoSuchPlace { .. })));
}

#[test]
fn datagrams_come_twice_and_late_until_they_shall_not() {
    const SENT: u32 = 4_000;
    // A datagram waits only if another was delayed just before it, so send a burst, even on a slow machine.
    const AT_ONCE: u32 = 80;
    let Some(lab) = lab(2) else { return };
    let [[from, _], [to, _]] = [Place::Host(0), Place::Host(1)].map(|place| sockets(&lab, place));
    let send = || {
        for number in 0..SENT {
            from.send_to(&number.to_be_bytes(), to.local_addr().unwrap()).unwrap();
            if number % AT_ONCE == AT_ONCE - 1 {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    };
    // Receives until the socket times out.
    let numbers = || {
        std::thread::scope(|scope| {
            scope.spawn(send);
            let mut buffer = [0; 4];
            let next = || to.recv_from(&mut buffer).ok().map(|_| u32::from_be_bytes(buffer));
            std::iter::from_fn(next).collect::<Vec<_>>()
        })
    };
    assert!(passes(&sockets(&lab, Place::Host(0)), &sockets(&lab, Place::Host(1))));
    let part = |part| Loss::new(part).unwrap();
    match lab.disorder(Disorder { lost: part(0.01), copied: part(0.1), late: part(0.05) }) {
        Err(why @ LabError::Command { .. }) => return skip(why),
        done => done.unwrap(),
    }
    let got = numbers();
    let late = got.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let mut different = got.clone();
    different.sort_unstable();
    different.dedup();
    // The sender's and the switch's interface each duplicate a tenth, including copies.
    let copies = (got.len() - different.len()) as u32;
    assert!(!about(0.0, copies, SENT) && copies > SENT / 10 && copies < SENT / 2, "{copies} of {SENT} came twice");
    println!("{late} of {SENT} came late, {copies} twice, {} at all", different.len());
    assert!(late > SENT as usize / 400, "{late} of {SENT} came late");
    assert!(different.len() as u32 > SENT * 8 / 10, "{} of {SENT} came", different.len());
    lab.order().unwrap();
    assert_eq!(numbers(), (0..SENT).collect::<Vec<_>>());
}
