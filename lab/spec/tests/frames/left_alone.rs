//! Frames that the kernel programs leave unchanged to the kernel; those that may have been for the switch are counted.

use crate::datagrams::question;
use crate::frame::{AD, Flow, IPV4, IPV6, Q, get16, put16, sum_ipv4};
use crate::shells::{NO_MAC, PORT, TIME, by_both, counted, flow, shells};
use midflight_dataplane::kernel::{Action, Arrival, Departure, KernelTasks};
use midflight_wire::PACKET_MAX;
use std::net::{IpAddr, SocketAddr};

/// `BPF_PROG_RUN` gives TC no shorter frame.
const WHOLE_HEADERS: usize = 14 + 40;

/// Label, frame, and the counter it raises, if any.
struct Case(&'static str, Vec<u8>, Option<&'static str>);

/// XDP counts it; TC does not count it again.
fn assert_left_alone(tasks: &mut KernelTasks, Case(name, frame, count): Case) {
    let untouched = Departure { action: Action::Pass, frame: frame.clone(), asked: None };
    let (departure, counts) = counted(tasks, |tasks| tasks.run_xdp(TIME, &Arrival::new(&frame)).unwrap());
    assert_eq!((departure, counts), (untouched.clone(), count.map(|name| (name, 1)).into_iter().collect()), "{name}");
    if frame.len() < WHOLE_HEADERS && [IPV4, IPV6].contains(&get16(&frame, 12)) {
        return;
    }
    let (departure, counts) = counted(tasks, |tasks| tasks.run_tc(TIME, &Arrival::new(&frame)).unwrap());
    assert_eq!((departure, counts), (untouched, vec![]), "{name}, TC");
}

fn assert_all_left_alone(cases: Vec<Case>) {
    let Some(mut shells) = shells() else { return };
    for ipv4 in [true, false] {
        let frame = ours(ipv4).request(&payload());
        assert_eq!(shells.run_xdp(TIME, &Arrival::new(&frame)).unwrap().action, Action::Transmit, "but for the case");
        assert_eq!(shells.run_tc(TIME, &Arrival::new(&frame)).unwrap().action, Action::Transmit, "but for the case");
    }
    cases.into_iter().for_each(|case| assert_left_alone(&mut shells, case));
}

/// An accepted flow: by loopback, on which TC runs here.
fn ours(ipv4: bool) -> Flow {
    Flow { to_mac: NO_MAC, ..flow(ipv4, 0) }
}

fn payload() -> Vec<u8> {
    question(1, 1)
}

/// A valid frame after `change`, with a correct IPv4 header checksum.
fn changed(ipv4: bool, change: impl FnOnce(&mut Vec<u8>, usize, usize)) -> Vec<u8> {
    let flow = ours(ipv4);
    let mut frame = flow.request(&payload());
    change(&mut frame, flow.l3(), flow.l4());
    if ipv4 {
        sum_ipv4(&mut frame, flow.l3());
    }
    frame
}

#[test]
fn what_is_somebody_elses() {
    let ping = |kind: u8| [kind, 0, 0, 0, 0, 0, 0, 1].to_vec();
    let mut cases = vec![
        Case("ARP", [ours(true).ethernet(0x0806), vec![0; 46]].concat(), None),
        Case("no IP at all", [ours(true).ethernet(0x88cc), vec![1; 46]].concat(), None),
        Case("802.3 with a length", [ours(true).ethernet(46), vec![1; 46]].concat(), None),
        Case(
            "ICMP",
            changed(true, |frame, l3, l4| {
                frame[l3 + 9] = 1;
                frame[l4..l4 + 8].copy_from_slice(&ping(8));
            }),
            None,
        ),
        Case(
            "ICMPv6",
            changed(false, |frame, l3, l4| {
                frame[l3 + 6] = 58;
                frame[l4..l4 + 8].copy_from_slice(&ping(128));
            }),
            None,
        ),
        Case("version 5 of IP", changed(true, |frame, l3, _| frame[l3] = 0x55), None),
        Case("version 5 as IPv6", changed(false, |frame, l3, _| frame[l3] = 0x50), None),
    ];
    for ipv4 in [true, false] {
        let other_port = Flow { to: SocketAddr::new(ours(ipv4).to.ip(), PORT + 1), ..ours(ipv4) };
        let other = if ipv4 { "192.0.2.2" } else { "2001:db8:ffff::2" }.parse().unwrap();
        let other_host = Flow { to: SocketAddr::new(other, PORT), ..ours(ipv4) };
        let (many, all) = ([0x01, 0, 0x5e, 0, 0, 1], [0xff; 6]);
        cases.extend([
            Case("TCP to our port", changed(ipv4, |frame, l3, _| frame[l3 + if ipv4 { 9 } else { 6 }] = 6), None),
            Case("another port", other_port.request(&payload()), None),
            Case("forwarded to another host's port of that number", other_host.request(&payload()), None),
            Case("to many", Flow { to_mac: many, ..ours(ipv4) }.request(&payload()), None),
            Case("to all", Flow { to_mac: all, ..ours(ipv4) }.request(&payload()), None),
            Case("from many", Flow { from_mac: many, ..ours(ipv4) }.request(&payload()), None),
            Case(
                "another port behind tags",
                Flow { tags: vec![(AD, 1), (Q, 2)], ..other_port }.request(&payload()),
                None,
            ),
        ]);
    }
    assert_all_left_alone(cases);
}

/// Impossible source addresses are left to the kernel's stack.
#[test]
fn t13_what_nobody_can_have_sent() {
    let from = |address: &str, port: u16| {
        let from: IpAddr = address.parse().unwrap();
        Flow { from: SocketAddr::new(from, port), ..ours(from.is_ipv4()) }
    };
    let case = |flow: Flow, name| Case(name, flow.request(&payload()), Some("passed_source"));
    let mut cases = vec![];
    for (name, address) in [
        ("this network", "0.0.0.0"),
        ("this network, its end", "0.255.255.255"),
        ("loopback", "127.0.0.1"),
        ("loopback, its beginning", "127.0.0.0"),
        ("loopback, its end", "127.255.255.255"),
        ("multicast", "224.0.0.1"),
        ("multicast, its end", "239.255.255.255"),
        ("reserved", "240.0.0.1"),
        ("broadcast", "255.255.255.255"),
        ("its own", "192.0.2.1"),
        ("unspecified", "::"),
        ("loopback of IPv6", "::1"),
        ("IPv4 as sockets write it", "::ffff:192.0.2.100"),
        ("its own, as sockets write it", "::ffff:192.0.2.1"),
        ("IPv4 as it was once written", "::192.0.2.100"),
        ("multicast of IPv6", "ff00::"),
        ("multicast to all nodes", "ff02::1"),
        ("multicast of IPv6, its end", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("its own of IPv6", "2001:db8:ffff::1"),
    ] {
        cases.push(case(from(address, 4000), name));
        cases.push(case(Flow { tags: vec![(AD, 1), (Q, 2)], ..from(address, 4000) }, name));
    }
    for address in ["192.0.2.100", "2001:db8::ff:100"] {
        cases.push(case(from(address, 0), "port 0"));
    }
    assert_all_left_alone(cases);
}

/// Not the address that the request is for.
#[test]
fn t13_what_claims_to_come_from_another_address_of_the_switch() {
    let Some(mut shells) = shells() else { return };
    for count in 1..=32u8 {
        let of =
            |number: u8| [IpAddr::from([192, 0, 2, number]), format!("2001:db8:ffff::{number:x}").parse().unwrap()];
        assert_eq!(shells.serve(PORT, &(1..=count).flat_map(of).collect::<Vec<_>>()), 0);
        for from in of(count) {
            let flow = Flow { from: SocketAddr::new(from, 4000), ..ours(from.is_ipv4()) };
            assert_left_alone(&mut shells, Case("its own", flow.request(&payload()), Some("passed_source")));
        }
    }
}

/// Neighbours of the addresses above are ordinary.
#[test]
fn what_its_neighbours_send_is_taken() {
    let Some(mut shells) = shells() else { return };
    for address in [
        "1.0.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.254.1.1",
        "223.255.255.255",
        "192.0.2.2",
        "0:0:0:1::1",
        "64:ff9b::192.0.2.100",
        "2001:db8:ffff::2",
        "fd00::1",
        "fe80::1",
        "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ] {
        let from: IpAddr = address.parse().unwrap();
        for port in [1, 0x00ff, 0xff00, 0xffff] {
            let flow = Flow { from: SocketAddr::new(from, port), ..ours(from.is_ipv4()) };
            let departure = shells.run_xdp(TIME, &Arrival::new(&flow.request(&payload()))).unwrap();
            assert_eq!(departure.action, Action::Transmit, "{flow:?}");
            assert_eq!(crate::frame::read(&departure.frame).0, flow.back());
        }
    }
}

/// IPv4 addresses are served in IPv4 frames only, and a frame must have a valid destination.
#[test]
fn what_is_for_an_address_that_no_frame_can_be_for() {
    let case = |address: &str| {
        let to: IpAddr = address.parse().unwrap();
        Case("for nobody", Flow { to: SocketAddr::new(to, PORT), ..ours(to.is_ipv4()) }.request(&payload()), None)
    };
    assert_all_left_alone(["0.0.0.0", "127.0.0.1", "::", "::1", "::ffff:192.0.2.1"].map(case).into());
}

#[test]
fn what_is_cut_off() {
    let mut cases = Vec::new();
    for ipv4 in [true, false] {
        for tags in [vec![], vec![(AD, 1), (Q, 2)]] {
            let flow = Flow { tags, ..ours(ipv4) };
            let frame = flow.request(&payload());
            let whole = flow.l4() + 8 + payload().len();
            assert_eq!(frame.len(), whole);
            for length in 14..whole {
                let count = (length >= flow.l4() + 8).then_some("passed_length");
                cases.push(Case("cut off", frame[..length].to_vec(), count));
            }
        }
    }
    assert_all_left_alone(cases);
}

#[test]
fn more_tags_than_two() {
    let mut cases = Vec::new();
    for ipv4 in [true, false] {
        let tagged = |count: u16| Flow { tags: (0..count).map(|n| (Q, n)).collect(), ..ours(ipv4) }.request(&payload());
        cases.push(Case("three", tagged(3), Some("passed_tags")));
        cases.push(Case("four", tagged(4), None));
    }
    assert_all_left_alone(cases);
}

#[test]
fn lengths_that_disagree() {
    let mut cases = Vec::new();
    for ipv4 in [true, false] {
        let bytes = 8 + payload().len() as u16;
        let udp = |length: u16| changed(ipv4, |frame, _, l4| put16(frame, l4 + 4, length));
        let ip = |length: u16| changed(ipv4, |frame, l3, _| put16(frame, l3 + if ipv4 { 2 } else { 4 }, length));
        let header = if ipv4 { 20 } else { 0 };
        let odd = Some("passed_length");
        cases.extend([
            Case("UDP longer than IP", udp(bytes + 1), odd),
            Case("UDP shorter than IP", udp(bytes - 4), odd),
            Case("UDP shorter than its header", udp(7), odd),
            Case("UDP of length 0", udp(0), odd),
            Case("IP longer than UDP", ip(header + bytes + 1), odd),
            Case("IP shorter than UDP", ip(header + bytes - 1), odd),
            Case("IP shorter than its headers", ip(header + 7), odd),
            Case("IP that ends with its header", ip(header), odd),
            Case("IP of length 0", ip(0), odd),
            Case("IP longer than anything", ip(0xffff), odd),
            Case("longer than any datagram of ours", ours(ipv4).request(&[0x4d; PACKET_MAX + 1]), odd),
            Case("a jumbo frame", ours(ipv4).request(&[0x4d; 3000]), odd),
        ]);
    }
    assert_all_left_alone(cases);
}

#[test]
fn checksums_that_are_wrong() {
    let wrong = Some("passed_checksum");
    let flip = |ipv4: bool, at: fn(usize, usize) -> usize| {
        let mut frame = ours(ipv4).request(&payload());
        frame[at(ours(ipv4).l3(), ours(ipv4).l4())] ^= 0x10;
        frame
    };
    assert_all_left_alone(vec![
        Case("IPv4's header", flip(true, |l3, _| l3 + 10), wrong),
        Case("IPv4's hops", flip(true, |l3, _| l3 + 8), wrong),
        Case("the payload by IPv4", flip(true, |_, l4| l4 + 20), wrong),
        Case("the payload by IPv6", flip(false, |_, l4| l4 + 20), wrong),
        Case("the sender's port by IPv6", flip(false, |_, l4| l4), wrong),
        Case("the sender's address by IPv6", flip(false, |l3, _| l3 + 20), wrong),
        Case("none by IPv6", changed(false, |frame, _, l4| put16(frame, l4 + 6, 0)), wrong),
    ]);
}

#[test]
fn fragments_of_ipv4() {
    let fragment = |bits: u16| changed(true, |frame, l3, _| put16(frame, l3 + 6, bits));
    let elsewhere = |bits: u16, port: u16, address: u8| {
        changed(true, |frame, l3, l4| {
            put16(frame, l3 + 6, bits);
            put16(frame, l4 + 2, port);
            frame[l3 + 19] = address;
        })
    };
    let ours = Some("passed_fragment");
    assert_all_left_alone(vec![
        Case("the first", fragment(0x2000), ours),
        Case("one in the middle", fragment(0x2010), ours),
        Case("the last", fragment(0x0010), ours),
        Case("the last possible", fragment(0x1fff), ours),
        Case("the first for another port", elsewhere(0x2000, PORT + 1, 1), None),
        Case("a later one, whose port nobody knows", elsewhere(0x0010, PORT + 1, 1), ours),
        Case("the first for another host", elsewhere(0x2000, PORT, 2), None),
        Case("a later one for another host", elsewhere(0x0010, PORT, 2), None),
        Case("the first with options", with_options(|frame, l3| put16(frame, l3 + 6, 0x2000)), ours),
    ]);
}

/// An IPv4 header with four bytes of options.
fn with_options(change: impl FnOnce(&mut Vec<u8>, usize)) -> Vec<u8> {
    let flow = ours(true);
    let mut frame = flow.request(&payload());
    frame.splice(flow.l4()..flow.l4(), [1, 1, 1, 0]);
    frame[flow.l3()] = 0x46;
    let total = get16(&frame, flow.l3() + 2);
    put16(&mut frame, flow.l3() + 2, total + 4);
    change(&mut frame, flow.l3());
    sum_ipv4(&mut frame, flow.l3());
    frame
}

#[test]
fn options_of_ipv4() {
    let [high, low] = PORT.to_be_bytes();
    let sender = SocketAddr::from(([192, 0, high, low], 4000));
    let mut port_in_address = Flow { from: sender, ..ours(true) }.request(&payload());
    port_in_address[ours(true).l3()] = 0x43;
    assert_all_left_alone(vec![
        Case("no operation", with_options(|_, _| ()), Some("passed_options")),
        Case("for another port", with_options(|frame, l3| put16(frame, l3 + 26, PORT + 1)), None),
        Case("for another host", with_options(|frame, l3| frame[l3 + 19] = 2), None),
        Case(
            "a header that claims to be longer than the frame",
            changed(true, |frame, l3, _| {
                frame[l3] = 0x4f;
                frame.truncate(l3 + 40);
            }),
            None,
        ),
        Case("a header that claims to be shorter than any", changed(true, |frame, l3, _| frame[l3] = 0x44), None),
        Case("the same, whose sender's address looks like our port", port_in_address, None),
    ]);
}

/// A frame with these extension headers: number, and bytes after the first.
fn extended(headers: &[(u8, &[u8])], change: impl FnOnce(&mut Vec<u8>, usize)) -> Vec<u8> {
    let flow = ours(false);
    let mut frame = flow.request(&payload());
    let mut between = Vec::new();
    for (i, (_, rest)) in headers.iter().enumerate() {
        between.push(headers.get(i + 1).map_or(17, |&(next, _)| next));
        between.extend_from_slice(rest);
    }
    frame[flow.l3() + 6] = headers[0].0;
    let length = get16(&frame, flow.l3() + 4);
    put16(&mut frame, flow.l3() + 4, length + between.len() as u16);
    let udp = flow.l4() + between.len();
    frame.splice(flow.l4()..flow.l4(), between);
    change(&mut frame, udp);
    frame
}

#[test]
fn extension_headers_and_fragments_of_ipv6() {
    let short: &[u8] = &[0, 1, 4, 0, 0, 0, 0];
    let long: &[u8] = &[2, 1, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (first, later): (&[u8], &[u8]) = (&[0, 0, 1, 0, 0, 0, 9], &[0, 0, 8, 0, 0, 0, 9]);
    let (hops, routing, fragment, destination) = (0, 43, 44, 60);
    let other_port = |frame: &mut Vec<u8>, udp: usize| put16(frame, udp + 2, PORT + 1);
    let other_host = |frame: &mut Vec<u8>, _: usize| frame[14 + 39] = 2;
    let same = |_: &mut Vec<u8>, _: usize| ();
    let (options, fragments) = (Some("passed_options"), Some("passed_fragment"));
    assert_all_left_alone(vec![
        Case("hop by hop", extended(&[(hops, short)], same), options),
        Case("destination, long", extended(&[(destination, long)], same), options),
        Case(
            "four",
            extended(&[(hops, short), (destination, long), (routing, short), (destination, short)], same),
            options,
        ),
        Case("five are not looked behind", extended(&[(hops, short); 5], same), None),
        Case("for another port", extended(&[(hops, short), (routing, long)], other_port), None),
        Case("for another host", extended(&[(hops, short)], other_host), None),
        Case("with ICMP behind", extended(&[(58, short)], same), None),
        Case("the first fragment", extended(&[(fragment, first)], same), fragments),
        Case("the first fragment behind options", extended(&[(hops, long), (fragment, first)], same), fragments),
        Case("the first fragment for another port", extended(&[(fragment, first)], other_port), None),
        Case("a later fragment, whose port nobody knows", extended(&[(fragment, later)], other_port), fragments),
        Case("a later fragment for another host", extended(&[(fragment, later)], other_host), None),
        Case("cut off in the header", extended(&[(hops, long)], |frame, _| frame.truncate(14 + 40 + 12)), None),
        Case("a header longer than the frame", extended(&[(hops, short)], |frame, _| frame[14 + 41] = 0xff), None),
        Case("a length that leads round", extended(&[(hops, &[0xff; 7]), (hops, &[0xff; 7])], same), None),
    ]);
}

/// Ethernet padding, and a checksum that some hardware leaves.
#[test]
fn bytes_behind_the_datagram_are_nobodys() {
    by_both(|shells, ipv4| {
        let mut frame = ours(ipv4).request(&payload());
        frame.extend_from_slice(b"nobody's");
        let departure = shells.run_xdp(TIME, &Arrival::new(&frame)).unwrap();
        assert_eq!(departure.action, Action::Transmit);
        assert_eq!(departure.asked.unwrap().0, payload());
        crate::frame::read(&departure.frame);
    });
}
