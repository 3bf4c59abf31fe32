//! The packets of the store: golden ones, random bytes, and corrupted packets.

use crate::golden;
use midflight_wire::store::*;
use midflight_wire::{Address, Header, PACKET_MAX, Reject, packet};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::mem::offset_of;
use zerocopy::{FromZeros, IntoBytes};

const EPOCH: u32 = 0x1E90_0001;
const INCARNATION: u64 = 0x14CA_0000_1E90_0001;
const SID: u64 = 3 << 32 | 1;
const KEY: &[u8] = b"{user}.name";

fn address(text: &str) -> Address {
    text.parse::<std::net::SocketAddr>().unwrap().into()
}

fn request(operation: Operation) -> Request {
    Request {
        header: Header::new(operation, EPOCH, 1),
        request: 0x4E90_0000_0000_0007.into(),
        sid: SID.into(),
        seq: 42.into(),
        index: 1001.into(),
        hash: key_hash(KEY).into(),
        set: 5.into(),
        client: address("192.0.2.1:7000"),
        ..Request::new_zeroed()
    }
}

fn with_key(request: Request) -> Request {
    Request { key_length: (KEY.len() as u16).into(), ..request }
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn replica(ip: &str, matched: u64) -> Replica {
    Replica { address: address(ip), weight: 10, matched: matched.into(), reserved: [0; 3] }
}

fn samples() -> [(&'static str, &'static str, Vec<u8>); 8] {
    let write = Write { client: 17.into(), number: 3.into(), command: Command::Put as u8, ..Write::new_zeroed() };
    let hello = Hello { incarnation: 7.into(), echo: 9.into(), set: 5.into(), slot: 1, ..Hello::new(0, 1) };
    let heartbeat = Heartbeat {
        incarnation: INCARNATION.into(),
        sid: SID.into(),
        start: 1000.into(),
        echo: 5_000_000_000.into(),
        set: 5.into(),
        kgroup_bits: 12,
        is_idle: 1,
        ..Heartbeat::new(0, 2)
    };
    let replicas = [replica("10.0.0.1:7001", 1001), replica("10.0.0.2:7001", 1001), Replica::new_zeroed()];
    let end = EndSession { incarnation: INCARNATION.into(), sid: SID.into(), set: 5.into(), ..EndSession::new(0, 3) };
    let mut state = State {
        incarnation: INCARNATION.into(),
        sid: SID.into(),
        ended: (2 << 32 | 1).into(),
        now: 5_050_000_000.into(),
        lease: 100_000_000.into(),
        seq: 42.into(),
        set: 5.into(),
        kgroup_bits: 12,
        lease_us: 150_000.into(),
        ..State::new(EPOCH, 2)
    };
    (state.sent[1], state.answered[1]) = (9.into(), 8.into());
    [
        (
            "read",
            "A READ of the key {user}.name of set 5, as the switch sends it to the replica at place 1.",
            joined(&[Request { slot: 1, ..with_key(request(Operation::Read)) }.as_bytes(), KEY]),
        ),
        (
            "read_reply",
            "Its answer, with the value Ann.",
            joined(&[Request { slot: 1, ..with_key(request(Operation::ReadReply)) }.as_bytes(), KEY, b"Ann"]),
        ),
        (
            "write",
            "A WRITE of client 17, its third: PUT {user}.name Ann.",
            joined(&[with_key(request(Operation::Write)).as_bytes(), write.as_bytes(), KEY, b"Ann"]),
        ),
        (
            "write_reply",
            "Its answer: replicas 0 and 1 have it at index 1001.",
            joined(&[Request { replicas: 3, ..request(Operation::WriteReply) }.as_bytes()]),
        ),
        ("hello", "Replica 1 of set 5 asks a switch for its time.", hello.as_bytes().to_vec()),
        (
            "heartbeat",
            "Session 1 of term 3 begins, with the replica at place 0 as leader, and none at place 2.",
            packet(&heartbeat, &replicas),
        ),
        ("end_session", "The same session ends.", end.as_bytes().to_vec()),
        ("state", "The switch answers the HEARTBEAT: 100 ms are left of its lease.", state.as_bytes().to_vec()),
    ]
}

fn rebuilt(read: &Packet<'_>) -> Vec<u8> {
    match read {
        Packet::Read(request, key) => joined(&[request.as_bytes(), key]),
        Packet::ReadReply(request, _, key, value) => joined(&[request.as_bytes(), key, value]),
        Packet::Write(request, write, key, rest) => joined(&[request.as_bytes(), write.as_bytes(), key, rest]),
        Packet::WriteReply(request, _, value) => joined(&[request.as_bytes(), value]),
        Packet::Hello(fixed) => fixed.as_bytes().to_vec(),
        Packet::Heartbeat(fixed, replicas) => packet(*fixed, replicas),
        Packet::EndSession(fixed) => fixed.as_bytes().to_vec(),
        Packet::State(fixed) => fixed.as_bytes().to_vec(),
        Packet::Version(fixed) => fixed.as_bytes().to_vec(),
    }
}

#[test]
fn golden_packets_of_the_store_are_written_and_read() {
    let mut operations = Vec::new();
    for (name, comment, bytes) in samples() {
        golden::assert_golden(&format!("store/{name}"), comment, &bytes);
        let read = parse(&bytes).unwrap_or_else(|reject| panic!("{name}: {reject}"));
        assert_eq!(rebuilt(&read), bytes, "{name}");
        operations.push(bytes[offset_of!(Header, operation)]);
    }
    assert_eq!(operations, Operation::ALL.iter().map(|&operation| operation as u8).collect::<Vec<_>>());
}

fn begun(operation: Operation, count: u8, mut bytes: Vec<u8>) -> Vec<u8> {
    let start = Header { count, ..Header::new(operation, 0, 0) };
    let length = bytes.len().min(offset_of!(Header, reserved));
    bytes[..length].copy_from_slice(&start.as_bytes()[..length]);
    bytes
}

fn any_operation() -> impl Strategy<Value = Operation> {
    proptest::sample::select(Operation::ALL)
}

fn valid(operation: Operation, random: Vec<u8>, key_length: usize) -> Vec<u8> {
    let count = if operation == Operation::Heartbeat { 1 + random[0] % REPLICAS_MAX as u8 } else { 0 };
    let status = random[1] % Status::ALL.len() as u8;
    let mut bytes = begun(operation, count, random);
    let (with_status, has_key) = match operation {
        Operation::Read => (false, Some(size_of::<Request>())),
        Operation::ReadReply => (true, Some(PACKET_MAX)),
        Operation::Write => (false, Some(PACKET_MAX)),
        Operation::WriteReply => (true, None),
        Operation::Hello => return cut(bytes, size_of::<Hello>()),
        Operation::Heartbeat => return cut(bytes, size_of::<Heartbeat>() + usize::from(count) * size_of::<Replica>()),
        Operation::EndSession => return cut(bytes, size_of::<EndSession>()),
        Operation::State => return cut(bytes, size_of::<State>()),
    };
    let key_length = if has_key.is_some() { key_length } else { 0 };
    bytes[offset_of!(Request, key_length)..][..2].copy_from_slice(&(key_length as u16).to_be_bytes());
    if with_status {
        bytes[offset_of!(Request, status)] = status;
    }
    match operation {
        Operation::Read => cut(bytes, size_of::<Request>() + key_length),
        _ => bytes,
    }
}

fn cut(mut bytes: Vec<u8>, length: usize) -> Vec<u8> {
    bytes.truncate(length);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(operation in any_operation(), count: u8, bytes in vec(any::<u8>(), 0..PACKET_MAX + 8)) {
        let _ = parse(&bytes);
        let bytes = begun(operation, count, bytes);
        if let Ok(read) = parse(&bytes) {
            prop_assert_eq!(rebuilt(&read), bytes);
        }
    }

    #[test]
    fn what_is_built_is_read(operation in any_operation(), bytes in vec(any::<u8>(), PACKET_MAX), key_length in 0..=KEY_MAX) {
        let bytes = valid(operation, bytes, key_length);
        prop_assert_eq!(parse(&bytes).map(|read| rebuilt(&read)), Ok(bytes));
    }

    /// R7: a packet cut before the end of its key is refused.
    #[test]
    fn a_shorter_packet_is_refused(operation in any_operation(), bytes in vec(any::<u8>(), PACKET_MAX), key_length in 0..=KEY_MAX, at: prop::sample::Index) {
        let bytes = valid(operation, bytes, key_length);
        let least = match operation {
            Operation::Write => size_of::<Request>() + size_of::<Write>() + key_length,
            Operation::ReadReply => size_of::<Request>() + key_length,
            Operation::WriteReply => size_of::<Request>(),
            _ => bytes.len(),
        };
        prop_assert_eq!(parse(&bytes[..at.index(least)]).err(), Some(Reject::Truncated));
    }
}

#[test]
fn r7_what_is_wrong_with_a_packet_has_a_name() {
    let refused = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = samples().into_iter().find(|sample| sample.0 == name).unwrap().2;
        change(&mut bytes);
        parse(&bytes).err()
    };
    let status = |bytes: &mut Vec<u8>| bytes[offset_of!(Request, status)] = Status::ALL.len() as u8;
    let long_key = |bytes: &mut Vec<u8>| bytes[offset_of!(Request, key_length)] = 5;
    for name in ["read", "read_reply", "write", "write_reply"] {
        assert_eq!(refused(name, &long_key), Some(Reject::BadKey), "{name}");
        assert_eq!(refused(name, &|bytes| bytes[offset_of!(Header, count)] = 1), Some(Reject::BadCount), "{name}");
        assert_eq!(refused(name, &|bytes| bytes.resize(PACKET_MAX + 1, 0)), Some(Reject::Trailing), "{name}");
    }
    assert_eq!(refused("read_reply", &status), Some(Reject::BadStatus));
    assert_eq!(refused("write_reply", &status), Some(Reject::BadStatus));
    assert_eq!(refused("read", &status), None, "only replies have one");
    for name in ["read", "hello", "heartbeat", "end_session", "state"] {
        assert_eq!(refused(name, &|bytes| bytes.push(0)), Some(Reject::Trailing), "{name}");
    }
    assert_eq!(refused("hello", &|bytes| bytes[offset_of!(Header, operation)] = 9), Some(Reject::UnknownOperation));
}
