//! The parser on random bytes, valid packets, and corrupted packets.

use crate::owned::Owned;
use midflight_wire::tasks::*;
use midflight_wire::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cmp::Ordering;
use std::mem::offset_of;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Offsets in every header.
const VERSION_BYTE: usize = offset_of!(Header, version);
const OPERATION: usize = offset_of!(Header, operation);
const COUNT: usize = offset_of!(Header, count);
const KEY: usize = offset_of!(Header, key);

/// A packet's operation, its bounds of `count` (from `docs/wire.md`), and the bytes of its fixed part and a record.
pub(crate) struct Shape {
    pub(crate) operation: Operation,
    pub(crate) count: std::ops::RangeInclusive<u8>,
    fixed: usize,
    record: usize,
    /// Bytes of the preference at the end of a SUBMIT.
    tail: usize,
}

impl Shape {
    /// Length of a packet with `count` records, with empty results.
    pub(crate) fn bytes(&self, count: u8) -> usize {
        self.fixed + usize::from(count) * self.record + self.tail
    }
}

pub(crate) fn shapes() -> Vec<Shape> {
    use Operation as Op;
    fn shape<F, R>(operation: Op, count: std::ops::RangeInclusive<u8>) -> Shape {
        Shape { operation, count, fixed: size_of::<F>(), record: size_of::<R>(), tail: 0 }
    }
    vec![
        shape::<Submit, TaskInfo>(Op::Submit, 1..=32),
        shape::<SubmitAck, ()>(Op::SubmitAck, 1..=32),
        shape::<Register, ()>(Op::Register, 1..=32),
        shape::<Registered, SlotName>(Op::Registered, 0..=32),
        shape::<Reset, Wait>(Op::Reset, 0..=32),
        shape::<Retrieve, Wait>(Op::Retrieve, 1..=13),
        shape::<Assign, Assignment>(Op::Assign, 1..=13),
        shape::<Keepalive, Wait>(Op::Keepalive, 1..=32),
        shape::<Release, Leave>(Op::Release, 1..=13),
        shape::<Released, SlotName>(Op::Released, 1..=32),
        shape::<Complete, Completion>(Op::Complete, 1..=32),
        shape::<CompleteAck, Completed>(Op::CompleteAck, 1..=32),
        shape::<Probe, TaskName>(Op::Probe, 0..=32),
        shape::<ProbeAck, ()>(Op::ProbeAck, 0..=32),
        shape::<Cancel, TaskName>(Op::Cancel, 1..=32),
        shape::<CancelAck, Holder>(Op::CancelAck, 0..=32),
        shape::<NoOp, Wait>(Op::NoOp, 1..=13),
        shape::<Cookie, ()>(Op::Cookie, 0..=0),
        shape::<Stop, RunName>(Op::Stop, 1..=32),
        Shape { tail: size_of::<Preference>(), ..shape::<Submit, TaskInfo>(Op::Submit, 1..=32) },
    ]
}

/// A well-formed packet: random bytes, corrected where the format requires it.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    (proptest::sample::select((0..shapes().len()).collect::<Vec<_>>()), any::<u8>(), vec(any::<u8>(), PACKET_MAX))
        .prop_map(|(which, count, random)| valid(&shapes()[which], count, random))
}

fn valid(shape: &Shape, count: u8, mut bytes: Vec<u8>) -> Vec<u8> {
    let (low, high) = shape.count.clone().into_inner();
    let count = low + count % (high - low + 1);
    bytes[..KEY + 1].copy_from_slice(&[0x4D, 0x46, VERSION, shape.operation as u8, count, 0]);
    match shape.operation {
        Operation::Complete => return valid_complete(shape, count, &bytes),
        Operation::Submit => return valid_tasks(shape, count, &bytes, 0),
        Operation::Assign => return valid_tasks(shape, count, &bytes, offset_of!(Assignment, task)),
        _ => {}
    }
    bytes.truncate(shape.bytes(count));
    bytes
}

/// As many tasks as fit, up to `count`; a third of them have an appended argument. `task`: offset of the task in its record.
fn valid_tasks(shape: &Shape, count: u8, random: &[u8], task: usize) -> Vec<u8> {
    let (mut bytes, mut appended, mut fitted) = (random[..shape.fixed].to_vec(), Vec::new(), 0);
    for record in random[shape.fixed..].chunks_exact(shape.record).take(count.into()) {
        let mut record = record.to_vec();
        let (mut info, _) = TaskInfo::read_from_prefix(&record[task..]).unwrap();
        info.priority = info.priority % LEVELS + 1;
        info.argument_length = match info.argument_length {
            BY_REFERENCE => BY_REFERENCE,
            random if random % 3 == 0 => APPENDED,
            random => random % 17,
        };
        if info.argument_length == APPENDED {
            let length = 17 + (u32::from(info.argument[0]) * 463 / 255) as u16;
            info.argument[..2].copy_from_slice(&length.to_be_bytes());
        }
        let more = shape.record + info.appended_bytes();
        if bytes.len() + appended.len() + more + shape.tail > PACKET_MAX {
            break;
        }
        appended.extend_from_slice(&random[..info.appended_bytes()]);
        record[task..task + size_of::<TaskInfo>()].copy_from_slice(info.as_bytes());
        bytes.extend_from_slice(&record);
        fitted += 1;
    }
    bytes[COUNT] = fitted;
    [bytes, appended, random[..shape.tail].to_vec()].concat()
}

fn valid_complete(shape: &Shape, count: u8, random: &[u8]) -> Vec<u8> {
    const LENGTH: usize = offset_of!(Completion, result_length);
    const REFERENCE: usize = offset_of!(Completion, by_reference);
    let mut bytes = random[..shape.fixed].to_vec();
    let mut fitted = 0;
    for record in random[shape.fixed..].chunks_exact(shape.record).take(count.into()) {
        let by_reference = record[REFERENCE] & 1;
        let wanted = u16::from_be_bytes([record[LENGTH], record[LENGTH + 1]]) % 200;
        let length = if by_reference == 1 { size_of::<BlobRef>() as u16 } else { wanted };
        if bytes.len() + shape.record + usize::from(length).next_multiple_of(4) > PACKET_MAX {
            break;
        }
        let start = bytes.len();
        bytes.extend_from_slice(record);
        bytes[start + REFERENCE] = by_reference;
        bytes[start + LENGTH..][..2].copy_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&random[..length.into()]);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        fitted += 1;
    }
    bytes[COUNT] = fitted;
    bytes
}

/// Length of a well-formed packet without its preference.
fn length_without_preference(packet: &[u8]) -> usize {
    match parse(packet) {
        Ok(Packet::Submit(.., Some(_))) => packet.len() - size_of::<Preference>(),
        _ => packet.len(),
    }
}

/// Random bytes, most of them after the start of a packet, to reach deeper checks.
fn anything() -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![
        Just(vec![]),
        (0..=20u8, any::<u8>()).prop_map(|(operation, count)| vec![0x4D, 0x46, VERSION, operation, count]),
        (0..=20u8, 0..40u8).prop_map(|(operation, count)| vec![0x4D, 0x46, VERSION, operation, count, 0]),
    ];
    (start, vec(any::<u8>(), 0..2048)).prop_map(|(start, rest)| [start, rest].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    #[test]
    fn a_packet_read_and_written_again_is_the_same(bytes in packet()) {
        let owned = Owned::from(parse(&bytes).map_err(|reject| TestCaseError::fail(reject.to_string()))?);
        prop_assert_eq!(&owned.encode(), &bytes);
        prop_assert_eq!(Owned::from(parse(&owned.encode()).unwrap()), owned);
    }

    #[test]
    fn t11_every_prefix_of_a_packet_is_rejected(bytes in packet()) {
        for length in 0..bytes.len() {
            let right = length_without_preference(&bytes);
            let wrong = match length.cmp(&right) {
                Ordering::Less => Some(Reject::Truncated),
                Ordering::Equal => None,
                Ordering::Greater => Some(Reject::Trailing),
            };
            prop_assert_eq!(parse(&bytes[..length]).err(), wrong, "{} bytes", length);
        }
    }

    #[test]
    fn t11_a_packet_with_more_behind_it_is_rejected(mut bytes in packet(), more in vec(any::<u8>(), 1..64)) {
        let may_be_preference = bytes[OPERATION] == Operation::Submit as u8 && bytes.len() == length_without_preference(&bytes);
        prop_assume!(!(may_be_preference && more.len() == size_of::<Preference>()));
        bytes.extend(more);
        prop_assert_eq!(parse(&bytes).err(), Some(Reject::Trailing));
    }

    #[test]
    fn t11_a_changed_byte_is_rejected_or_read_as_it_stands(mut bytes in packet(), at in any::<prop::sample::Index>(), by in 1..=255u8) {
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        match parse(&bytes) {
            // Only the padding after a result is lost.
            Ok(packet) => {
                prop_assert_ne!(at, KEY);
                prop_assert_eq!(Owned::from(packet).encode().len(), bytes.len());
            }
            Err(reject) => prop_assert!(!(KEY + 1..size_of::<Header>()).contains(&at), "{} at byte {} of the header", reject, at),
        }
    }

    #[test]
    fn t11_any_bytes_are_read_or_rejected(bytes in anything()) {
        if let Ok(packet) = parse(&bytes) {
            prop_assert_eq!(Owned::from(packet).encode().len(), bytes.len());
        }
    }

    /// The parser checks the version first, because another version may define everything else differently.
    #[test]
    fn t11_other_versions_are_rejected_with_their_number(version in any::<u8>(), operation in 1..=255u8, rest in vec(any::<u8>(), 4..2048)) {
        prop_assume!(version != VERSION);
        let bytes = [vec![0x4D, 0x46, version, operation], rest].concat();
        prop_assert_eq!(parse(&bytes).err(), Some(Reject::BadVersion(version)));
    }
}

#[test]
fn t11_a_count_outside_its_bounds_is_rejected() {
    for shape in shapes() {
        for count in 0..=255 {
            let mut bytes = valid(&shape, 0, vec![0; PACKET_MAX]);
            bytes[COUNT] = count;
            let rejected = parse(&bytes).err() == Some(Reject::BadCount);
            assert_eq!(rejected, !shape.count.contains(&count), "{:?} with {count}", shape.operation);
        }
    }
}

#[test]
fn t11_each_header_field_is_checked_by_name() {
    let good = valid(&shapes()[0], 0, vec![0; PACKET_MAX]);
    for (at, value, reject) in [
        (0, 0x4E, Reject::BadMagic),
        (1, 0, Reject::BadMagic),
        (VERSION_BYTE, 0, Reject::BadVersion(0)),
        (VERSION_BYTE, 1, Reject::BadVersion(1)),
        (VERSION_BYTE, 255, Reject::BadVersion(255)),
        (OPERATION, VERSION_OPERATION, Reject::Trailing),
        (OPERATION, 20, Reject::UnknownOperation),
        (OPERATION, 255, Reject::UnknownOperation),
        (KEY, 1, Reject::UnknownKey),
        (KEY, 255, Reject::UnknownKey),
        (size_of::<Submit>() + 8, 0, Reject::BadPriority),
        (size_of::<Submit>() + 8, LEVELS + 1, Reject::BadPriority),
        (size_of::<Submit>() + 10, 17, Reject::BadArgument),
        (size_of::<Submit>() + 10, 253, Reject::BadArgument),
        (size_of::<Submit>() + 12, 2, Reject::BadArgument),
    ] {
        let mut bytes = good.clone();
        bytes[at] = value;
        assert_eq!(parse(&bytes).err(), Some(reject), "byte {at} = {value}");
    }
}

/// All versions share these 8 bytes.
#[test]
fn version_is_read_from_every_version_and_from_nothing_else() {
    for version in 0..=255 {
        let packet = Version { version, ..Version::OURS };
        let bytes = packet.as_bytes();
        assert_eq!(Owned::from(parse(bytes).unwrap()), Owned::Version(packet));
        assert_eq!(parse(&[bytes, &[0]].concat()).err(), Some(Reject::Trailing));
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length]).err(), Some(Reject::Truncated), "{length} bytes");
        }
    }
}

#[test]
fn t11_a_result_that_exceeds_its_bound_is_rejected() {
    let result_length = size_of::<Complete>() + offset_of!(Completion, result_length);
    let by_reference = size_of::<Complete>() + offset_of!(Completion, by_reference);
    let good = valid(&shapes()[10], 0, vec![0; PACKET_MAX]);
    for (reference, length, reject) in [
        (0, RESULT_MAX as u16 + 1, Reject::BadResult),
        (0, u16::MAX, Reject::BadResult),
        (0, 1, Reject::Truncated),
        (1, 15, Reject::BadResult),
        (1, 17, Reject::BadResult),
        (1, 16, Reject::Truncated),
        (2, 0, Reject::BadResult),
    ] {
        let mut bytes = good.clone();
        bytes[by_reference] = reference;
        bytes[result_length..result_length + 2].copy_from_slice(&length.to_be_bytes());
        assert_eq!(parse(&bytes).err(), Some(reject), "by_reference {reference}, {length} bytes");
    }
}

/// IPv6 guarantees 1,280 bytes on every link, of which its header and UDP's take 40 and 8.
#[test]
fn t15_the_largest_packet_of_each_operation_fits_every_path() {
    assert_eq!(PACKET_MAX, 1280 - 40 - 8);
    for shape in shapes() {
        let largest = match shape.operation {
            Operation::Complete => shape.bytes(1) + RESULT_MAX,
            _ => shape.bytes(*shape.count.end()),
        };
        assert!(largest <= PACKET_MAX, "{:?}: {largest} bytes", shape.operation);
    }
}

/// With a larger bound one ASSIGN could not answer a RETRIEVE; a smaller one wastes packets.
#[test]
fn t15_one_assign_answers_a_full_retrieve_and_has_no_room_for_more() {
    let assign = |count| size_of::<Assign>() + count * size_of::<Assignment>();
    assert!(assign(SLOTS_MAX) <= PACKET_MAX && assign(SLOTS_MAX + 1) > PACKET_MAX);
}

#[test]
fn no_fixed_part_exceeds_96_bytes() {
    for shape in shapes() {
        assert!(shape.fixed <= 96, "{:?}: {} bytes", shape.operation, shape.fixed);
    }
}

#[test]
fn a_complete_takes_results_until_it_is_full() {
    let completion = Completion { result_length: (RESULT_MAX as u16).into(), attempt: 1, ..Completion::new_zeroed() };
    let mut buffer = Vec::new();
    let mut builder = Builder::new(&mut buffer, &Complete::new(1, 0));
    assert!(builder.push_completion(&completion, &[7; RESULT_MAX]));
    assert!(!builder.push_completion(&completion, &[7; RESULT_MAX]), "a second one of this size cannot fit");
    let small = Completion { result_length: 3.into(), ..completion };
    assert!(builder.push_completion(&small, &[8; 3]));
    let Ok(Packet::Complete(_, completions)) = parse(&buffer) else { panic!("not a COMPLETE") };
    let lengths: Vec<usize> = completions.map(|(_, result)| result.len()).collect();
    assert_eq!(lengths, [RESULT_MAX, 3]);
}

/// Adds results of one length until the builder refuses one, which would have exceeded the packet.
#[test]
fn t15_a_complete_is_never_longer_than_a_packet() {
    for length in 0..=RESULT_MAX {
        let completion = Completion { result_length: (length as u16).into(), attempt: 1, ..Completion::new_zeroed() };
        let (mut buffer, result) = (Vec::new(), vec![7; length]);
        let mut builder = Builder::new(&mut buffer, &Complete::new(1, 0));
        while builder.push_completion(&completion, &result) {}
        let count = builder.count();
        let one_more = size_of::<Completion>() + length.next_multiple_of(4);
        assert!(buffer.len() <= PACKET_MAX, "{count} results of {length} bytes: {}", buffer.len());
        assert!(count == COMPLETE_MAX || buffer.len() + one_more > PACKET_MAX, "{count} results of {length} bytes");
    }
}
