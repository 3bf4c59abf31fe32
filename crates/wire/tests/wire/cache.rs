//! The packets of the cache: golden ones, random bytes, and corrupted packets.

use crate::golden;
use midflight_wire::cache::*;
use midflight_wire::{Address, PACKET_MAX};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;
use std::mem::offset_of;
use zerocopy::{FromZeros, IntoBytes};

const GROUP: u32 = 0x01_02_03;
const ASKED: &[u8] = b"get user:1000";
const ANSWERED: &[u8] = b"Ada";

fn address(text: &str) -> Address {
    text.parse::<std::net::SocketAddr>().unwrap().into()
}

fn ends() -> Ends {
    Ends {
        client: address("10.0.1.5:7000"),
        server: address("10.0.2.7:7800"),
        request: 0x4E90_0000_0000_0007.into(),
        tag: 0.into(),
    }
}

fn with_cookie(cookie: u64) -> Ends {
    let mut client = Address::new_zeroed();
    client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
    Ends { client, ..ends() }
}

fn labelled(start: Netrs) -> Netrs {
    Netrs { rsnode: 300.into(), retained: 0x5107.into(), ..start }
}

fn request(start: Netrs, ends: &Ends) -> Vec<u8> {
    let request = NetrsRequest { start, group: NetrsRequest::group_bytes(GROUP) };
    [request.as_bytes(), ends.as_bytes(), ASKED].concat()
}

fn response(start: Netrs) -> Vec<u8> {
    let status = ServerStatus { queue: 3.into(), sequence: 41.into(), service_us: 4_000.into() };
    let length = size_of::<ServerStatus>() as u16;
    let response = NetrsResponse { start, marker: 0x0001_0002.into(), status_length: length.into() };
    [response.as_bytes(), status.as_bytes(), ends().as_bytes(), ANSWERED].concat()
}

fn samples() -> [(&'static str, &'static str, Vec<u8>); 9] {
    let cookie = Ends { server: Address::new_zeroed(), ..with_cookie(0xC00C_1E00_0000_0004) };
    let degraded = Netrs { rsnode: ILLEGAL_RSNODE.into(), ..Netrs::for_server(Kind::Monitored) };
    [
        ("version", "An operator answers a packet of another version.", Netrs::new(Kind::Version).as_bytes().to_vec()),
        (
            "request",
            "A client asks for a key of replica group 0x010203, with its cookie and its backup.",
            request(Netrs::new(Kind::Request), &with_cookie(0xC00C_1E00_0000_0004)),
        ),
        (
            "request_selected",
            "The selector of RSNode 300 has chosen 10.0.2.7:7800 for it.",
            request(labelled(Netrs::for_server(Kind::Response)), &ends()),
        ),
        ("request_degraded", "Nobody selects for it: it goes to its backup.", request(degraded, &ends())),
        (
            "request_direct",
            "A client has chosen for itself.",
            request(Netrs::for_server(Kind::Direct), &with_cookie(0xC00C_1E00_0000_0005)),
        ),
        ("response", "The server's answer, on its way to RSNode 300.", response(labelled(Netrs::new(Kind::Response)))),
        ("monitored", "The same answer, on its way to the client.", response(labelled(Netrs::new(Kind::Monitored)))),
        ("direct", "An answer that passes no operator.", response(Netrs::new(Kind::Direct))),
        (
            "cookie",
            "The operator asks for a cookie: this one.",
            [Netrs::new(Kind::Cookie).as_bytes(), cookie.as_bytes()].concat(),
        ),
    ]
}

fn rebuilt(read: &Packet<'_>) -> Vec<u8> {
    match read {
        Packet::Request(request, ends, rest) | Packet::ForServer(_, request, ends, rest) => {
            [request.as_bytes(), ends.as_bytes(), rest].concat()
        }
        Packet::Response(_, response, status, ends, rest) => {
            [response.as_bytes(), status, ends.as_bytes(), rest].concat()
        }
        Packet::Cookie(start, ends) => [start.as_bytes(), ends.as_bytes()].concat(),
        Packet::Version(start) => start.as_bytes().to_vec(),
    }
}

#[test]
fn golden_packets_of_the_cache_are_written_and_read() {
    let mut kinds = BTreeSet::new();
    for (name, comment, bytes) in samples() {
        golden::assert_golden(&format!("cache/{name}"), comment, &bytes);
        let read = parse(&bytes).unwrap_or_else(|reject| panic!("{name}: {reject}"));
        assert_eq!(rebuilt(&read), bytes, "{name}");
        kinds.insert(bytes[offset_of!(Netrs, kind)] & !NETRS_XOR);
    }
    assert!(kinds.into_iter().eq(Kind::ALL.iter().map(|&kind| kind as u8)));
}

/// The paper requires it of the three magic fields and their images under f.
#[test]
fn magic_fields_and_their_images_are_pairwise_distinct_and_f_is_its_own_inverse() {
    let all = Kind::ALL.iter().flat_map(|&kind| [Netrs::new(kind), Netrs::for_server(kind)]);
    let fields: BTreeSet<Vec<u8>> =
        all.map(|start| start.as_bytes()[offset_of!(Netrs, magic)..offset_of!(Netrs, retained)].to_vec()).collect();
    assert_eq!(fields.len(), 2 * Kind::ALL.len());
    assert!(fields.iter().all(|field| field.len() == 6), "the paper's width");
    for &kind in Kind::ALL {
        assert_eq!(Netrs::for_server(kind).kind ^ NETRS_XOR, Netrs::new(kind).kind);
    }
}

#[test]
fn a_replica_groups_id_has_24_bits() {
    assert_eq!(NetrsRequest::group_bytes(GROUP), [1, 2, 3]);
    for group in [0, GROUP, (1 << 24) - 1] {
        let request = NetrsRequest { start: Netrs::new(Kind::Request), group: NetrsRequest::group_bytes(group) };
        assert_eq!(request.group(), group);
    }
}

fn begun(kind: u8, mut bytes: Vec<u8>) -> Vec<u8> {
    let start = Netrs { kind, ..Netrs::new(Kind::Request) };
    let length = bytes.len().min(size_of::<Netrs>());
    bytes[..length].copy_from_slice(&start.as_bytes()[..length]);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    #[test]
    fn n8_any_bytes_are_read_or_refused(kind in 0..8_u8, to_server: bool, status in 0..80_u16, bytes in vec(any::<u8>(), 0..PACKET_MAX + 8)) {
        let _ = parse(&bytes);
        let mut bytes = begun(kind | if to_server { NETRS_XOR } else { 0 }, bytes);
        if bytes.len() > size_of::<NetrsResponse>() {
            bytes[offset_of!(NetrsResponse, status_length)..][..2].copy_from_slice(&status.to_be_bytes());
        }
        if let Ok(read) = parse(&bytes) {
            let rebuilt = rebuilt(&read);
            prop_assert_eq!(&rebuilt[..], &bytes[..rebuilt.len()]);
            prop_assert!(rebuilt.len() == bytes.len() || matches!(read, Packet::Version(_)));
        }
    }

    /// N8: a packet cut before the end of its ends is refused.
    #[test]
    fn n8_a_shorter_packet_is_refused(which in 1..8_usize, at: prop::sample::Index) {
        let (name, _, bytes) = &samples()[which];
        let least = bytes.len() - if name.starts_with("request") { ASKED.len() } else { ANSWERED.len() };
        prop_assert_eq!(parse(&bytes[..at.index(least)]).err(), Some(Reject::Truncated), "{}", name);
    }
}

#[test]
fn n8_what_is_wrong_with_a_packet_has_a_name() {
    let refused = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = samples().into_iter().find(|sample| sample.0 == name).unwrap().2;
        change(&mut bytes);
        parse(&bytes).err()
    };
    let status = |length: u16| {
        move |bytes: &mut Vec<u8>| {
            bytes[offset_of!(NetrsResponse, status_length)..][..2].copy_from_slice(&length.to_be_bytes())
        }
    };
    let kind = |kind: u8| move |bytes: &mut Vec<u8>| bytes[offset_of!(Netrs, kind)] = kind;
    let version = |bytes: &mut Vec<u8>| bytes[offset_of!(Netrs, version)] = 2;
    for name in ["response", "monitored", "direct"] {
        assert_eq!(refused(name, &status(65)), Some(Reject::LongStatus), "{name}");
        assert_eq!(refused(name, &status(64)), Some(Reject::Truncated), "{name}: it overruns");
        assert_eq!(refused(name, &|bytes| bytes.resize(PACKET_MAX + 1, 0)), Some(Reject::Trailing), "{name}");
    }
    assert_eq!(refused("request", &|bytes| bytes[offset_of!(Netrs, magic)] = 0), Some(Reject::BadMagic));
    assert_eq!(refused("request", &version), Some(Reject::BadVersion(2)));
    assert_eq!(refused("version", &version), None, "it says which one its sender speaks");
    assert_eq!(refused("request", &kind(6)), Some(Reject::UnknownOperation));
    for alone in [Kind::Request, Kind::Cookie] {
        let name = format!("{alone:?} is never sent to a server");
        assert_eq!(refused("request", &kind(alone as u8 | NETRS_XOR)), Some(Reject::UnknownOperation), "{name}");
    }
    assert_eq!(refused("cookie", &|bytes| bytes.push(0)), Some(Reject::Truncated), "it has nothing behind its ends");
}
