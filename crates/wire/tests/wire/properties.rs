//! The parser against any bytes, valid packets, and valid packets with something wrong.

use crate::owned::Owned;
use midflight_wire::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A packet's operation, what it may count (from `docs/wire.md`), and the bytes of its fixed part and of a record.
struct Shape {
    operation: Operation,
    count: std::ops::RangeInclusive<u8>,
    fixed: usize,
    record: usize,
}

fn shapes() -> Vec<Shape> {
    use Operation as Op;
    fn shape<F, R>(operation: Op, count: std::ops::RangeInclusive<u8>) -> Shape {
        Shape { operation, count, fixed: size_of::<F>(), record: size_of::<R>() }
    }
    vec![
        shape::<Submit, TaskInfo>(Op::Submit, 1..=32),
        shape::<SubmitAck, ()>(Op::SubmitAck, 1..=32),
        shape::<Register, ()>(Op::Register, 1..=32),
        shape::<Registered, SlotName>(Op::Registered, 0..=32),
        shape::<Reset, SlotName>(Op::Reset, 0..=32),
        shape::<Retrieve, Wait>(Op::Retrieve, 1..=16),
        shape::<Assign, Assignment>(Op::Assign, 1..=16),
        shape::<Keepalive, SlotName>(Op::Keepalive, 1..=32),
        shape::<Release, Leave>(Op::Release, 1..=16),
        shape::<Released, SlotName>(Op::Released, 1..=32),
        shape::<Complete, Completion>(Op::Complete, 1..=32),
        shape::<CompleteAck, Completed>(Op::CompleteAck, 1..=32),
        shape::<Probe, TaskName>(Op::Probe, 0..=32),
        shape::<ProbeAck, ()>(Op::ProbeAck, 0..=32),
        shape::<Cancel, TaskName>(Op::Cancel, 1..=32),
        shape::<CancelAck, ()>(Op::CancelAck, 1..=32),
        shape::<NoOp, Wait>(Op::NoOp, 1..=16),
    ]
}

/// Any well-formed packet: random bytes, made valid where the format asks for something.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    (proptest::sample::select((0..shapes().len()).collect::<Vec<_>>()), any::<u8>(), vec(any::<u8>(), PACKET_MAX))
        .prop_map(|(which, count, random)| valid(&shapes()[which], count, random))
}

fn valid(shape: &Shape, count: u8, mut bytes: Vec<u8>) -> Vec<u8> {
    let (low, high) = shape.count.clone().into_inner();
    let count = low + count % (high - low + 1);
    bytes[..5].copy_from_slice(&[0x4D, 0x46, VERSION, shape.operation as u8, count]);
    match shape.operation {
        Operation::Complete => return valid_complete(shape, count, &bytes),
        Operation::Submit => make_tasks_valid(&mut bytes[shape.fixed..], size_of::<TaskInfo>(), 0),
        Operation::Assign => {
            make_tasks_valid(&mut bytes[shape.fixed..], shape.record, std::mem::offset_of!(Assignment, task));
        }
        _ => {}
    }
    bytes.truncate(shape.fixed + usize::from(count) * shape.record);
    bytes
}

fn make_tasks_valid(records: &mut [u8], record: usize, task: usize) {
    for record in records.chunks_exact_mut(record) {
        let task = &mut record[task..];
        let priority = &mut task[std::mem::offset_of!(TaskInfo, priority)];
        *priority = *priority % LEVELS + 1;
        let length = &mut task[std::mem::offset_of!(TaskInfo, argument_length)];
        *length = if *length == BY_REFERENCE { BY_REFERENCE } else { *length % 17 };
    }
}

/// As many completions as fit, each with a result of random length.
fn valid_complete(shape: &Shape, count: u8, random: &[u8]) -> Vec<u8> {
    let mut bytes = random[..shape.fixed].to_vec();
    let mut fitted = 0;
    for record in random[shape.fixed..].chunks_exact(shape.record).take(count.into()) {
        let by_reference = record[7] & 1;
        let wanted = u16::from_be_bytes([record[26], record[27]]) % 200;
        let length = if by_reference == 1 { size_of::<BlobRef>() } else { usize::from(wanted) };
        if bytes.len() + shape.record + length.next_multiple_of(4) > PACKET_MAX {
            break;
        }
        let start = bytes.len();
        bytes.extend_from_slice(record);
        bytes[start + 7] = by_reference;
        bytes[start + 24..start + 28].copy_from_slice(&(length as u32).to_be_bytes());
        bytes.extend_from_slice(&random[..length]);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        fitted += 1;
    }
    bytes[4] = fitted;
    bytes
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
            prop_assert_eq!(parse(&bytes[..length]).err(), Some(Reject::Truncated), "{} bytes", length);
        }
    }

    #[test]
    fn t11_a_packet_with_more_behind_it_is_rejected(mut bytes in packet(), more in vec(any::<u8>(), 1..64)) {
        bytes.extend(more);
        prop_assert_eq!(parse(&bytes).err(), Some(Reject::Trailing));
    }

    #[test]
    fn t11_a_changed_byte_is_rejected_or_read_as_it_stands(mut bytes in packet(), at in any::<prop::sample::Index>(), by in 1..=255u8) {
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        match parse(&bytes) {
            // Only the padding behind a result is not kept.
            Ok(packet) => prop_assert_eq!(Owned::from(packet).encode().len(), bytes.len()),
            Err(reject) => prop_assert!(!(5..16).contains(&at), "{} at byte {} of the header", reject, at),
        }
    }

    #[test]
    fn t11_any_bytes_are_read_or_rejected(bytes in vec(any::<u8>(), 0..2048)) {
        if let Ok(packet) = parse(&bytes) {
            prop_assert_eq!(Owned::from(packet).encode().len(), bytes.len());
        }
    }
}

#[test]
fn t11_a_count_outside_its_bounds_is_rejected() {
    for shape in shapes() {
        for count in 0..=255 {
            let mut bytes = valid(&shape, 0, vec![0; PACKET_MAX]);
            bytes[4] = count;
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
        (2, 0, Reject::BadVersion),
        (2, VERSION + 1, Reject::BadVersion),
        (3, 0, Reject::UnknownOperation),
        (3, 18, Reject::UnknownOperation),
        (size_of::<Submit>() + 8, 0, Reject::BadPriority),
        (size_of::<Submit>() + 8, LEVELS + 1, Reject::BadPriority),
        (size_of::<Submit>() + 10, 17, Reject::BadArgument),
        (size_of::<Submit>() + 10, 254, Reject::BadArgument),
    ] {
        let mut bytes = good.clone();
        bytes[at] = value;
        assert_eq!(parse(&bytes).err(), Some(reject), "byte {at} = {value}");
    }
}

#[test]
fn t11_a_result_that_exceeds_its_bound_is_rejected() {
    let result_length = size_of::<Complete>() + std::mem::offset_of!(Completion, result_length);
    let by_reference = size_of::<Complete>() + std::mem::offset_of!(Completion, by_reference);
    let good = valid(&shapes()[10], 0, vec![0; PACKET_MAX]);
    for (reference, length, reject) in [
        (0, RESULT_MAX as u32 + 1, Reject::BadResult),
        (0, u32::MAX, Reject::BadResult),
        (0, 1, Reject::Truncated),
        (1, 15, Reject::BadResult),
        (1, 17, Reject::BadResult),
        (1, 16, Reject::Truncated),
        (2, 0, Reject::BadResult),
    ] {
        let mut bytes = good.clone();
        bytes[by_reference] = reference;
        bytes[result_length..result_length + 4].copy_from_slice(&length.to_be_bytes());
        assert_eq!(parse(&bytes).err(), Some(reject), "by_reference {reference}, {length} bytes");
    }
}

#[test]
fn the_largest_packet_of_each_operation_fits_a_datagram() {
    for shape in shapes().iter().filter(|shape| shape.operation != Operation::Complete) {
        let largest = shape.fixed + usize::from(*shape.count.end()) * shape.record;
        assert!(largest <= PACKET_MAX, "{:?}: {largest} bytes", shape.operation);
    }
}

#[test]
fn no_fixed_part_exceeds_64_bytes() {
    for shape in shapes() {
        assert!(shape.fixed <= 64, "{:?}: {} bytes", shape.operation, shape.fixed);
    }
}

#[test]
fn a_complete_takes_results_until_it_is_full() {
    let completion = Completion {
        submission: 0.into(),
        index: 0,
        attempt: 1,
        status: 0,
        by_reference: 0,
        waited_us: 0.into(),
        held_us: 0.into(),
        ran_ns: 0.into(),
        result_length: (RESULT_MAX as u32).into(),
        reserved: 0.into(),
    };
    let fixed = Complete { header: Header::new(Operation::Complete, 1, 0), client: 1.into(), executor: 2.into() };
    let mut buffer = Vec::new();
    let mut builder = Builder::new(&mut buffer, &fixed);
    assert!(builder.push_completion(&completion, &[7; RESULT_MAX]));
    assert!(!builder.push_completion(&completion, &[7; RESULT_MAX]), "a second one of this size cannot fit");
    let small = Completion { result_length: 3.into(), ..completion };
    assert!(builder.push_completion(&small, &[8; 3]));
    let Ok(Packet::Complete(_, completions)) = parse(&buffer) else { panic!("not a COMPLETE") };
    let lengths: Vec<usize> = completions.map(|(_, result)| result.len()).collect();
    assert_eq!(lengths, [RESULT_MAX, 3]);
}
