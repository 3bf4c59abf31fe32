//! The store program with frames: it forwards requests and replies in the frames that they came in.

use crate::capture::Port;
use crate::frame::{Flow, Q, hex, put16, read, sum_ipv4};
use crate::shells::{PORT, SECRET, TIME, counted, forward, handed_over, ip, lab, own, skip};
use midflight_dataplane::kernel::{Action, Arrival, Departure};
use midflight_dataplane::program::Engine;
use midflight_dataplane::store::{NewSet, Policy, ReplyCheck, SetOrder, StoreConfig, StoreProgram, Verdict};
use midflight_dataplane::{Cookies, XdpMode};
use midflight_net::Place;
use midflight_spec::transcript::{KernelOnce, Spare};
use midflight_wire::store::{FLAG_LEADER_ONLY, Heartbeat, Hello, Operation, Replica, Request, Status, Write, key_hash};
use midflight_wire::{Header, packet};
use std::mem::offset_of;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::LazyLock;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const SET: u16 = 9;
const INCARNATION: u64 = 0x1234_5678;
const KEY: &[u8] = b"key";
/// Odd length, and too long for one round of copying.
const VALUE: &[u8] = &[0xa5; 77];

const COOKIE: Range<usize> = offset_of!(Request, client)..offset_of!(Request, client) + 8;

type Counts = Vec<(&'static str, u64)>;

/// A switch in the kernel with a set of a leader, place 0, and a follower, place 1, to which all reads go.
struct Switch {
    shells: KernelOnce<StoreProgram>,
    ipv4: bool,
}

fn by_both(act: impl Fn(&mut Switch)) {
    static SPARE: LazyLock<Spare<StoreProgram>> = LazyLock::new(Spare::default);
    for ipv4 in [true, false] {
        let mut shells = match KernelOnce::new(&SPARE, &StoreConfig::default(), 1, SECRET) {
            Err(missing) if missing.is_unavailable() => return skip(&missing.to_string()),
            loaded => loaded.unwrap(),
        };
        shells.set_mode(XdpMode::Native, &[]);
        shells.serve(PORT, &[own(true).ip(), own(false).ip()]);
        let mut switch = Switch { shells, ipv4 };
        let replicas = [0, 1].map(|slot| switch.replica(slot).from).to_vec();
        let (reply_check, policy) = (ReplyCheck::Strict, Policy::Random);
        let new = NewSet {
            number: SET,
            incarnation: INCARNATION,
            lease_ns: 0,
            kgroup_bits: 4,
            reply_check,
            policy,
            replicas,
        };
        let mut order = SetOrder::add(&new);
        while !Engine::order(&mut *switch.shells, &mut order).unwrap() {}
        act(&mut switch);
        handed_over(&switch.shells);
    }
}

impl Switch {
    fn flow(&self, host: u8, port: u16) -> Flow {
        let from = if self.ipv4 {
            SocketAddr::from(([192, 0, 2, host], port))
        } else {
            format!("[2001:db8::{host:x}]:{port}").parse().unwrap()
        };
        Flow { from_mac: [2, 0, 0, 0, 0, host], to_mac: [0; 6], tags: vec![], from, to: own(self.ipv4) }
    }

    fn client(&self) -> Flow {
        self.flow(100, 7000)
    }

    fn replica(&self, slot: u8) -> Flow {
        self.flow(10 + slot, 7001)
    }

    fn xdp(&mut self, frame: &[u8]) -> (Departure<Verdict>, Counts) {
        counted(&mut self.shells, |shells| shells.run_xdp(TIME, &Arrival::new(frame)).unwrap())
    }

    /// A replica's packet about sessions; the answer leaves by TC.
    fn say(&mut self, slot: u8, datagram: &[u8]) {
        let frame = self.replica(slot).request(datagram);
        let departure = self.shells.run_tc(TIME, &Arrival::new(&frame)).unwrap();
        assert_eq!((departure.action, departure.asked.unwrap().1), (Action::Transmit, Verdict::Ok));
    }

    fn begin(&mut self) {
        let member = |slot| Replica {
            address: self.replica(slot).from.into(),
            weight: slot,
            matched: 1.into(),
            reserved: [0; 3],
        };
        let replicas = [member(0), member(1)];
        let beat = Heartbeat {
            incarnation: INCARNATION.into(),
            sid: 1.into(),
            start: 1.into(),
            echo: (TIME - 1).into(),
            set: SET.into(),
            kgroup_bits: 4,
            ..Heartbeat::new(0, 1)
        };
        self.say(0, &packet(&beat, &replicas));
    }

    fn greet(&mut self) {
        let (incarnation, echo) = (INCARNATION.into(), (TIME - 1).into());
        self.say(1, Hello { incarnation, echo, set: SET.into(), slot: 1, ..Hello::new(0, 1) }.as_bytes());
    }

    fn request(&self, operation: Operation) -> Vec<u8> {
        let (key_length, hash) = ((KEY.len() as u16).into(), key_hash(KEY).into());
        let mut request = Request { set: SET.into(), key_length, hash, ..Request::new(operation) };
        let cookies = Cookies::new(SECRET, StoreConfig::default().cookie_ns);
        request.client.ip[..8].copy_from_slice(&cookies.give(TIME, 0, self.client().from).to_be_bytes());
        match operation {
            Operation::Write => [request.as_bytes(), Write::new_zeroed().as_bytes(), KEY, VALUE].concat(),
            _ => [request.as_bytes(), KEY].concat(),
        }
    }

    /// A request goes by XDP to a replica. Returns the request as received there.
    fn passes(&mut self, operation: Operation, slot: u8) -> Vec<u8> {
        let asked = self.client().request(&self.request(operation));
        let (departure, counts) = self.xdp(&asked);
        assert_eq!(departure.action, Action::Transmit, "{counts:?}");
        assert_eq!(counts, [("xdp_taken", 1), ("forwarded", 1)]);
        let (flow, datagram) = read(&departure.frame);
        assert_eq!(flow, self.replica(slot).back());
        datagram
    }
}

/// T13: a known client gets its next cookie by its own next hop, whichever host sent the frame. This needs no process, so
/// its requests continue if the process dies. An unknown client gets its cookie from the process.
#[test]
fn t13_a_known_client_gets_its_next_cookie_at_its_own_place() {
    by_both(|switch| {
        switch.begin();
        switch.greet();
        let mut stale = switch.request(Operation::Read);
        stale[COOKIE].fill(0);
        let (departure, counts) = switch.xdp(&switch.client().request(&stale));
        assert_eq!((departure.action, counts), (Action::Drop, vec![("xdp_taken", 1), ("handed_over", 1)]));
        handed_over(&switch.shells);

        switch.passes(Operation::Read, 1);
        let forger = Flow { from_mac: [2, 0, 0, 0, 0, 66], ..switch.client() };
        for sender in [switch.client(), forger] {
            let (departure, counts) = switch.xdp(&sender.request(&stale));
            assert_eq!((departure.action, counts), (Action::Transmit, vec![("xdp_taken", 1), ("xdp_answered", 1)]));
            let (flow, datagram) = read(&departure.frame);
            assert_eq!(flow, switch.client().back());
            let (reply, _) = Request::ref_from_prefix(&datagram).unwrap();
            assert_eq!(reply.status, Status::Cookie as u8);
            assert_eq!(datagram[COOKIE], switch.request(Operation::Read)[COOKIE]);
        }
    });
}

fn answer(asked: &[u8], value: &[u8]) -> Vec<u8> {
    let (request, _) = Request::ref_from_prefix(asked).unwrap();
    let mut reply = *request;
    reply.header.operation = Operation::ReadReply as u8;
    [reply.as_bytes(), KEY, value].concat()
}

fn end_of(frame: &mut [u8]) -> &mut u8 {
    frame.last_mut().unwrap()
}

/// R6: each forwarded frame is as the switch would write it, including checksums.
#[test]
fn r6_a_read_and_its_reply_pass_in_place() {
    by_both(|switch| {
        switch.begin();
        switch.greet();
        let asked = switch.passes(Operation::Read, 1);
        let reply = switch.replica(1).request(&answer(&asked, VALUE));
        let (departure, counts) = switch.xdp(&reply);
        assert_eq!(counts, [("xdp_taken", 1), ("forwarded", 1)]);
        let (flow, datagram) = read(&departure.frame);
        assert_eq!(flow, switch.client().back());
        assert_eq!(&datagram[96..], [KEY, VALUE].concat());
        let (reply, _) = Request::ref_from_prefix(&datagram).unwrap();
        assert_eq!((reply.header.epoch.get(), reply.sid.get(), reply.client.port.get()), (0, 0, 0), "secrets");
    });
}

/// Where the frame goes, its new content, the verdict, and the counts.
type Fate = (Action, String, Option<Verdict>, Counts);

impl Switch {
    /// Outcomes of a frame on XDP's fast path (the switch serves few addresses) and on the slow path (it serves many).
    fn both_ways(&mut self, frame: &[u8]) -> [Fate; 2] {
        let few = vec![own(true).ip(), own(false).ip()];
        let more = (1..=4).map(|host| IpAddr::from([198, 51, 100, host])).chain(few.clone()).collect();
        [few, more].map(|served| {
            self.shells.serve(PORT, &served);
            let (departure, counts) = self.xdp(frame);
            (departure.action, hex(&departure.frame), departure.asked.map(|asked| asked.1), counts)
        })
    }

    fn assert_same_both_ways(&mut self, name: &str, frame: &[u8]) {
        let [short, long] = self.both_ways(frame);
        assert_eq!(short, long, "{name}");
        handed_over(&self.shells);
    }
}

/// Every frame ends alike on XDP's fast and slow path, whichever header byte changes. (Except the operation: a WRITE
/// would change state for the next frame.)
#[test]
fn the_short_way_is_the_long_one() {
    by_both(|switch| {
        switch.begin();
        switch.greet();
        let read = switch.client().request(&switch.request(Operation::Read));
        let asked = switch.passes(Operation::Read, 1);
        let reply = switch.replica(1).request(&answer(&asked, VALUE));
        let payload = switch.client().l4() + 8;
        for (name, good) in [("READ", &read), ("READ_REPLY", &reply)] {
            let [(action, .., counts), _] = switch.both_ways(good);
            assert_eq!((action, &counts[..]), (Action::Transmit, &[("xdp_taken", 1), ("forwarded", 1)][..]), "{name}");
            for at in (0..payload + 96).filter(|at| *at != payload + offset_of!(Header, operation)) {
                for flipped in [0x01, 0x04, 0x10, 0x80, 0xff] {
                    let mut frame = good.clone();
                    frame[at] ^= flipped;
                    switch.assert_same_both_ways(&format!("{name}, byte {at} ^ {flipped:#x}"), &frame);
                    if switch.ipv4 && (14..34).contains(&at) {
                        sum_ipv4(&mut frame, 14);
                        switch.assert_same_both_ways(
                            &format!("{name}, byte {at} ^ {flipped:#x}, header sum right"),
                            &frame,
                        );
                    }
                }
            }
        }
    });
}

/// The same for frames that are unusual in several bytes.
#[test]
fn what_is_unusual_goes_the_long_way() {
    by_both(|switch| {
        switch.begin();
        switch.greet();
        let request = switch.request(Operation::Read);
        let client = switch.client();
        let at = client.l4() + 6;
        let mut no_sum = client.request(&request);
        put16(&mut no_sum, at, 0);
        let mut longer = client.request(&request);
        longer.extend([0; 7]);
        let own_source = Flow { from: SocketAddr::new(own(switch.ipv4).ip(), 7000), ..client.clone() };
        let no_port = Flow { from: SocketAddr::new(client.from.ip(), 0), ..client.clone() };
        let tagged = Flow { tags: vec![(Q, 7)], ..client.clone() };
        let cases = [
            ("no checksum", no_sum),
            ("bytes behind the datagram", longer),
            ("from an address of the switch", own_source.request(&request)),
            ("from no port", no_port.request(&request)),
            ("tagged", tagged.request(&request)),
            ("sum left to hardware", client.partial(client.request(&request), &request)),
            ("no key", client.request(&request[..96])),
            ("cut off", client.request(&request[..95])),
        ];
        for (name, frame) in cases {
            switch.assert_same_both_ways(name, &frame);
        }
    });
}

/// A WRITE goes to the leader, and its reply closes the key group.
#[test]
fn a_write_and_its_reply_pass_in_place() {
    by_both(|switch| {
        switch.begin();
        let asked = switch.passes(Operation::Write, 0);
        let (request, _) = Request::ref_from_prefix(&asked).unwrap();
        let mut reply = Request { key_length: 0.into(), index: 2.into(), replicas: 3, ..*request };
        reply.header.operation = Operation::WriteReply as u8;
        assert_eq!(switch.shells.stats().sets[0].unstable, 1);
        let reply = switch.replica(0).request(reply.as_bytes());
        let (departure, counts) = switch.xdp(&reply);
        assert_eq!(counts, [("xdp_taken", 1), ("forwarded", 1)]);
        assert_eq!(read(&departure.frame).0, switch.client().back());
        assert_eq!(switch.shells.stats().sets[0].unstable, 0);
    });
}

/// The switch checks only a READ's header, so it must keep the checksum's error for the receiver.
#[test]
fn damage_to_a_read_stays_visible() {
    by_both(|switch| {
        switch.begin();
        switch.greet();
        let good = switch.client().request(&switch.request(Operation::Read));
        let forwarded = switch.xdp(&good).0.frame;
        let mut damaged = good.clone();
        *end_of(&mut damaged) ^= 0x40;
        let (departure, counts) = switch.xdp(&damaged);
        assert_eq!((departure.action, &counts[..]), (Action::Transmit, &[("xdp_taken", 1), ("forwarded", 1)][..]));
        let mut expected = forwarded;
        *end_of(&mut expected) ^= 0x40;
        assert_eq!(hex(&departure.frame), hex(&expected), "only the damage differs");
    });
}

/// A WRITE or its reply changes a key group, so the switch rejects a damaged one.
#[test]
fn damage_to_a_write_is_seen_here() {
    by_both(|switch| {
        switch.begin();
        let mut damaged = switch.client().request(&switch.request(Operation::Write));
        *end_of(&mut damaged) ^= 0x40;
        let (departure, counts) = switch.xdp(&damaged);
        assert_eq!((departure.action, &counts[..]), (Action::Pass, &[("passed_checksum", 1)][..]));
        assert_eq!(switch.shells.stats().sets[0].writes, 0);
    });
}

/// The switch completes a checksum that the sender left to hardware: the next link may need it.
#[test]
fn a_checksum_left_to_hardware_is_made_whole() {
    by_both(|switch| {
        switch.begin();
        switch.greet();
        switch.shells.set_mode(XdpMode::Native, &[1]);
        for (operation, slot) in [(Operation::Read, 1), (Operation::Write, 0)] {
            let (client, request) = (switch.client(), switch.request(operation));
            let whole = switch.xdp(&client.request(&request)).0.frame;
            let (departure, counts) = switch.xdp(&client.partial(client.request(&request), &request));
            assert_eq!(counts, [("xdp_taken", 1), ("forwarded", 1)]);
            assert_eq!(read(&departure.frame).0, switch.replica(slot).back());
            if operation == Operation::Read {
                assert_eq!(hex(&departure.frame), hex(&whole));
            }
        }
        switch.shells.set_mode(XdpMode::Native, &[]);
    });
}

/// The process's socket sends the READ to an unknown follower; after its HELLO, XDP does.
#[test]
fn a_read_to_an_unknown_place_is_handed_over() {
    by_both(|switch| {
        switch.begin();
        let request = switch.request(Operation::Read);
        let asked = switch.client().request(&request);
        let (departure, counts) = switch.xdp(&asked);
        assert_eq!((departure.action, &counts[..]), (Action::Drop, &[("xdp_taken", 1), ("handed_over", 1)][..]));
        let left = handed_over(&switch.shells);
        let [(own, to, datagram)] = &left[..] else { panic!("{left:?}") };
        assert_eq!((*own, *to), (None, switch.replica(1).from));
        assert_eq!((datagram.len(), &datagram[96..]), (request.len(), KEY));
        switch.greet();
        switch.passes(Operation::Read, 1);
    });
}

/// A replica unknown to the switch: frames reach it by the kernel's routes and neighbours, if forwarding is allowed.
#[test]
fn a_read_to_a_place_that_only_the_kernel_knows_passes_in_place() {
    let Some(lab) = lab(2) else { return };
    let story = || {
        let [near, far] = ["host0", "host1"].map(|name| Port::open(name).index);
        by_both(|switch| {
            switch.shells.set_interfaces(&[near]);
            let follower = switch.replica(1);
            let (there, mac) =
                (follower.from.ip(), [2, 0, 0, 0, 0, 11].map(|byte: u8| format!("{byte:02x}")).join(":"));
            ip(&lab, &format!("route replace {there} dev host1"));
            ip(&lab, &format!("neigh replace {there} lladdr {mac} dev host1 nud permanent"));
            switch.begin();
            let asked = switch.client().request(&switch.request(Operation::Read));
            let arrival = Arrival { interface: near, ..Arrival::new(&asked) };
            let ask =
                |switch: &mut Switch| counted(&mut switch.shells, |shells| shells.run_xdp(TIME, &arrival).unwrap());
            forward(&lab, follower.from.is_ipv4(), false);
            let (departure, counts) = ask(switch);
            assert_eq!((departure.action, counts), (Action::Drop, vec![("xdp_taken", 1), ("handed_over", 1)]));
            forward(&lab, follower.from.is_ipv4(), true);
            let (departure, counts) = ask(switch);
            let not_attached = (Action::Drop, vec![("xdp_taken", 1), ("handed_over", 1)]);
            assert_eq!((departure.action, counts), not_attached, "to an interface without this program");
            switch.shells.set_interfaces(&[near, far]);
            let (departure, counts) = ask(switch);
            assert_eq!((departure.action, counts), (Action::Transmit, vec![("xdp_taken", 1), ("forwarded", 1)]));
            let (flow, datagram) = read(&departure.frame);
            let from_mac = flow.from_mac; // of the interface that leads there
            assert_eq!(flow, Flow { from_mac, ..follower.back() });
            assert_eq!(&datagram[96..], KEY);
        });
    };
    lab.within(Place::Switch, story).unwrap();
}

/// The process's socket must not give a damaged one a correct checksum.
#[test]
fn damage_is_not_handed_over() {
    by_both(|switch| {
        switch.begin();
        let mut damaged = switch.client().request(&switch.request(Operation::Read));
        *end_of(&mut damaged) ^= 1;
        let (departure, counts) = switch.xdp(&damaged);
        assert_eq!((departure.action, &counts[..]), (Action::Drop, &[("xdp_taken", 1), ("dropped_checksum", 1)][..]));
        assert_eq!(handed_over(&switch.shells), []);
    });
}

/// R1: a reply after a later WRITE is cut off after the key, and goes to the leader as a READ.
#[test]
fn r1_a_reply_that_is_too_late_is_turned_back() {
    by_both(|switch| {
        switch.begin();
        switch.greet();
        let asked = switch.passes(Operation::Read, 1);
        switch.passes(Operation::Write, 0);
        let reply = switch.replica(1).request(&answer(&asked, VALUE));
        let (departure, counts) = switch.xdp(&reply);
        assert_eq!((departure.action, &counts[..]), (Action::Drop, &[("xdp_taken", 1), ("handed_over", 1)][..]));
        let left = handed_over(&switch.shells);
        let [(own, to, datagram)] = &left[..] else { panic!("{left:?}") };
        assert_eq!((*own, *to), (Some(switch.client().to.ip()), switch.replica(0).from));
        let (read, rest) = Request::ref_from_prefix(datagram).unwrap();
        assert_eq!((read.header.operation, read.flags, rest), (Operation::Read as u8, FLAG_LEADER_ONLY, KEY));
    });
}

/// Datagrams shorter than their header or their stated length are refused and change nothing.
#[test]
fn r7_what_is_cut_off_is_refused() {
    by_both(|switch| {
        switch.begin();
        switch.greet();
        let request = switch.request(Operation::Read);
        for length in [4, 24, 95, 96, request.len() - 1] {
            let cut = switch.client().request(&request[..length]);
            let (departure, _) = switch.xdp(&cut);
            assert_eq!(departure.asked.unwrap().1, Verdict::Truncated, "{length}");
        }
        let mut longer_than_its_frame = switch.client().request(&request);
        let (l3, l4) = (switch.client().l3(), switch.client().l4());
        put16(&mut longer_than_its_frame, l4 + 4, 8 + request.len() as u16 + 1);
        put16(&mut longer_than_its_frame, l4 + 6, 0x1234);
        if switch.ipv4 {
            put16(&mut longer_than_its_frame, l3 + 2, 28 + request.len() as u16 + 1);
            sum_ipv4(&mut longer_than_its_frame, l3);
        } else {
            put16(&mut longer_than_its_frame, l3 + 4, 8 + request.len() as u16 + 1);
        }
        let (departure, counts) = switch.xdp(&longer_than_its_frame);
        assert_eq!((departure.action, &counts[..]), (Action::Pass, &[("passed_length", 1)][..]));
        assert_eq!(switch.shells.stats().sets[0].to_followers, 0);
    });
}
