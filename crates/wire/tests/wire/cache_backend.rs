//! The messages between a cache's client and an agent: golden ones, the tables of their page, random bytes.

use crate::agreement::{assert_page_has, assert_read_as_a_whole, read, table_after};
use crate::golden;
use midflight_wire::cache::backend::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const PAGE: &str = "docs/cache-wire.md";
const ASK: usize = size_of::<BackendAsk>();
const TELL: usize = size_of::<BackendTell>();

fn requests() -> Vec<(&'static str, &'static str, BackendRequest<'static>)> {
    vec![
        ("get", "The value of a key.", BackendRequest::Get { key: b"user:17" }),
        (
            "set",
            "Keep a value for an hour.",
            BackendRequest::Set { key: b"user:17", value: b"Ada", flags: 0x2A, expires_s: 3_600 },
        ),
        ("delete", "Forget a key.", BackendRequest::Delete { key: b"user:17" }),
    ]
}

fn answers() -> Vec<(&'static str, &'static str, BackendAnswer<'static>)> {
    vec![
        ("value", "The value, with its flags.", BackendAnswer::Value { value: b"Ada", flags: 0x2A }),
        ("long", "A value that does not fit a datagram.", BackendAnswer::Long { length: 70_000 }),
        ("missing", "No such key.", BackendAnswer::Missing),
        ("done", "A SET or DELETE is done.", BackendAnswer::Done),
        ("refused", "The agent could not.", BackendAnswer::Refused { why: "the backend does not answer" }),
        ("other_version", "The agent speaks version 1.", BackendAnswer::OtherVersion { version: 1 }),
    ]
}

fn asked(request: &BackendRequest<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_request(request, &mut bytes);
    bytes
}

fn told(answer: &BackendAnswer<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_answer(answer, &mut bytes);
    bytes
}

#[test]
fn golden_requests_and_answers_of_a_backend_are_written_and_read() {
    for (name, comment, request) in requests() {
        let bytes = asked(&request);
        golden::assert_golden(&format!("cache_backend/{name}"), comment, &bytes);
        assert_eq!(parse_request(&bytes), Ok(Some((request, bytes.len()))), "{name}");
    }
    for (name, comment, answer) in answers() {
        let bytes = told(&answer);
        golden::assert_golden(&format!("cache_backend/{name}"), comment, &bytes);
        assert_eq!(parse_answer(&bytes), Ok(Some((answer, bytes.len()))), "{name}");
    }
}

#[test]
fn the_page_has_every_structure_of_a_backend() {
    assert_page_has("Backend", &structures());
}

#[test]
fn the_page_has_every_operation_and_status_of_a_backend() {
    let page = read(PAGE);
    let numbers = |heading: &str| -> Vec<(String, String)> {
        table_after(&page, heading).iter().map(|row| (row[0].clone(), row[1].replace('_', ""))).collect()
    };
    let ours = |number: u8, name: String| (number.to_string(), name.to_uppercase());
    let operations = BackendOperation::ALL.iter().map(|&code| ours(code.into(), format!("{code:?}")));
    assert_eq!(numbers("A request asks for an operation:"), operations.collect::<Vec<_>>());
    let statuses = BackendStatus::ALL.iter().map(|&code| ours(code.into(), format!("{code:?}")));
    assert_eq!(numbers("An answer has a status:"), statuses.collect::<Vec<_>>());
}

#[test]
fn the_page_has_the_bounds_of_a_backend() {
    let page = read(PAGE);
    let with_commas = |number: usize| {
        let digits = number.to_string();
        let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
        groups.join(",")
    };
    for (what, bound) in
        [("1 to {} bytes", KEY_MAX), ("at most {}", VALUE_MAX), ("at most {} bytes of text", REASON_MAX)]
    {
        let said = what.replace("{}", &with_commas(bound));
        let section = page.split("## Between a client and an agent").nth(1).unwrap();
        assert!(section.contains(&said), "{said}");
    }
    assert!(page.contains(&format!("| `magic` | 0x{BACKEND_MAGIC:X}, \"MFNS\" |")));
    assert!(page.contains(&format!("This is version {BACKEND_VERSION} of what a client and an [agent")));
}

#[test]
fn a_request_or_an_answer_is_read_once_it_is_there_as_a_whole() {
    for (name, _, request) in requests() {
        assert_read_as_a_whole(name, &asked(&request), |bytes| parse_request(bytes).unwrap().map(|read| read.1));
    }
    for (name, _, answer) in answers() {
        assert_read_as_a_whole(name, &told(&answer), |bytes| parse_answer(bytes).unwrap().map(|read| read.1));
    }
}

#[test]
fn n8_what_is_wrong_with_a_request_has_a_name() {
    let changed = |which: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = asked(&requests()[which].2);
        change(&mut bytes);
        parse_request(&bytes).err()
    };
    let set = |place: usize, byte: u8| move |bytes: &mut Vec<u8>| bytes[place] = byte;
    const GET: usize = 0;
    const SET: usize = 1;
    const DELETE: usize = 2;
    assert_eq!(changed(GET, &set(0, 0)), Some(BackendReject::BadMagic));
    assert_eq!(changed(GET, &set(4, 2)), Some(BackendReject::BadVersion(2)));
    assert_eq!(changed(GET, &set(5, 0)), Some(BackendReject::Unknown));
    assert_eq!(changed(GET, &set(5, 4)), Some(BackendReject::Unknown));
    assert_eq!(changed(GET, &set(6, 0)), Some(BackendReject::BadKey), "no key");
    assert_eq!(changed(GET, &set(6, 251)), Some(BackendReject::BadKey), "a key that is too long");
    assert_eq!(changed(GET, &set(7, 1)), Some(BackendReject::BadValue), "reserved");
    for (field, place) in [("flags", 11), ("expires_s", 15), ("length", 19)] {
        assert_eq!(changed(GET, &set(place, 1)), Some(BackendReject::BadValue), "GET: {field}");
        assert_eq!(changed(DELETE, &set(place, 1)), Some(BackendReject::BadValue), "DELETE: {field}");
    }
    for byte in [0, b' ', b'\r', b'\n', 0x7f] {
        assert_eq!(changed(GET, &set(ASK + 3, byte)), Some(BackendReject::BadKey), "{byte:#x} in a key");
    }
    let of_length = |length: u32| move |bytes: &mut Vec<u8>| bytes[16..20].copy_from_slice(&length.to_be_bytes());
    assert_eq!(changed(SET, &of_length(VALUE_MAX as u32 + 1)), Some(BackendReject::TooLong));
    assert_eq!(changed(SET, &of_length(VALUE_MAX as u32)), None, "the rest may come");
}

#[test]
fn n8_what_is_wrong_with_an_answer_has_a_name() {
    let changed = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let (.., answer) = answers().into_iter().find(|answer| answer.0 == name).unwrap();
        let mut bytes = told(&answer);
        change(&mut bytes);
        parse_answer(&bytes).err()
    };
    let set = |place: usize, byte: u8| move |bytes: &mut Vec<u8>| bytes[place] = byte;
    let of_length = |length: u32| move |bytes: &mut Vec<u8>| bytes[12..16].copy_from_slice(&length.to_be_bytes());
    assert_eq!(changed("value", &set(0, 0)), Some(BackendReject::BadMagic));
    assert_eq!(changed("value", &set(4, 2)), Some(BackendReject::BadVersion(2)));
    assert_eq!(changed("value", &set(5, 0)), Some(BackendReject::Unknown));
    assert_eq!(changed("value", &set(5, 7)), Some(BackendReject::Unknown));
    assert_eq!(changed("value", &set(7, 1)), Some(BackendReject::BadValue), "reserved");
    for name in ["long", "missing", "done", "refused"] {
        assert_eq!(changed(name, &set(11, 1)), Some(BackendReject::BadValue), "{name}: flags");
    }
    for name in ["missing", "done"] {
        assert_eq!(changed(name, &of_length(1)), Some(BackendReject::BadValue), "{name}: nothing follows");
    }
    for name in ["value", "long"] {
        assert_eq!(changed(name, &of_length(VALUE_MAX as u32 + 1)), Some(BackendReject::TooLong), "{name}");
    }
    assert_eq!(changed("refused", &of_length(REASON_MAX as u32 + 1)), Some(BackendReject::TooLong));
    assert_eq!(changed("refused", &set(TELL, 0xFF)), Some(BackendReject::BadValue), "no UTF-8");
}

/// All versions can read this response.
#[test]
fn n8_an_agent_of_another_version_is_understood() {
    let mut bytes = told(&BackendAnswer::OtherVersion { version: 9 });
    bytes[6..].fill(0xAA);
    assert_eq!(parse_answer(&bytes), Ok(Some((BackendAnswer::OtherVersion { version: 9 }, TELL))));
}

#[test]
fn a_reason_that_is_too_long_is_cut_between_two_letters() {
    let long = "ä".repeat(REASON_MAX);
    let bytes = told(&BackendAnswer::Refused { why: &long });
    let cut = "ä".repeat(REASON_MAX / 2);
    assert_eq!(parse_answer(&bytes), Ok(Some((BackendAnswer::Refused { why: &cut }, TELL + REASON_MAX))));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    #[test]
    fn n8_any_bytes_are_a_request_of_a_backend_or_refused(head: [u8; 4], length in 0..40_u32, body in vec(any::<u8>(), 0..300)) {
        let _ = parse_request(&body);
        let [operation, key_length, flags, expires] = head;
        let start = [&BACKEND_MAGIC.to_be_bytes()[..], &[BACKEND_VERSION, operation % 5, key_length % 40, 0]].concat();
        let more = if operation % 5 == 2 { [flags, expires] } else { [0, 0] };
        let bytes = [&start[..], &[0, 0, 0, more[0], 0, 0, 0, more[1]], &length.to_be_bytes(), &body].concat();
        if let Ok(Some((request, length))) = parse_request(&bytes) {
            prop_assert_eq!(asked(&request), &bytes[..length]);
        }
    }

    #[test]
    fn n8_any_bytes_are_an_answer_of_a_backend_or_refused(status in 0..8_u8, flags: u8, length in 0..300_u32, body in vec(any::<u8>(), 0..300)) {
        let _ = parse_answer(&body);
        let head = [&BACKEND_MAGIC.to_be_bytes()[..], &[BACKEND_VERSION, status, 0, 0, 0, 0, 0, flags], &length.to_be_bytes()].concat();
        let bytes = [head, body].concat();
        if let Ok(Some((answer, length))) = parse_answer(&bytes) {
            let again = told(&answer);
            prop_assert_eq!(again.len(), length);
            prop_assert_eq!(parse_answer(&again), Ok(Some((answer, length))));
        }
    }

    #[test]
    fn n8_a_request_or_an_answer_with_a_wrong_byte_is_read_or_refused(which in 0..9_usize, at: prop::sample::Index, byte: u8) {
        let (requests, answers) = (requests(), answers());
        if let Some((.., request)) = requests.get(which) {
            let mut bytes = asked(request);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(Some((request, length))) = parse_request(&bytes) {
                prop_assert_eq!(asked(&request), &bytes[..length]);
            }
        } else {
            let mut bytes = told(&answers[which - requests.len()].2);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(Some((answer, _))) = parse_answer(&bytes) {
                let again = told(&answer);
                prop_assert_eq!(parse_answer(&again), Ok(Some((answer, again.len()))));
            }
        }
    }
}
