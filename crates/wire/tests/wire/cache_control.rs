//! The messages between a cache controller and its operators: golden ones, the tables of their page, random bytes.

use crate::agreement::{assert_page_has, assert_read_as_a_whole};
use crate::golden;
use midflight_wire::cache::control::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::net::SocketAddr;

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

const TERM: Term = Term { number: 7, controller: 0xC0 };
const LAST: SetNumber = SetNumber { loading: 1, sequence: 3 };

fn messages() -> Vec<(&'static str, &'static str, ControlMessage)> {
    let record =
        |what| RuleRecord { what, rack: 1, group: 0, rsnode: 0, marker: 0x0001_0000, address: at("10.0.0.1:7700") };
    let label = RuleRecord { rack: 0, group: 3, rsnode: 12, marker: 0, address: at("0.0.0.0:0"), ..record(8) };
    let servers = vec![at("10.0.2.1:7800"), at("10.0.2.2:7800"), at("[fd00::3]:7800")];
    vec![
        (
            "ask",
            "A standby asks how an operator is.",
            ControlMessage::Ask(Ask { number: 5, term: None, inventory: None }),
        ),
        (
            "ask_inventory",
            "A controller takes over, and asks which rules of the plan there are.",
            ControlMessage::Ask(Ask { number: 6, term: Some(TERM), inventory: Some(2) }),
        ),
        (
            "set",
            "A rack, a replica group, the number of selectors, a label: and these are all rules.",
            ControlMessage::Set(Set {
                term: TERM,
                number: LAST,
                incarnation: 0xBEEF,
                orders: vec![
                    Order::Rule(record(1)),
                    Order::ReplicaGroup { group: 0x01_02_03, servers },
                    Order::Selectors(2),
                    Order::Rule(label),
                ],
                complete: true,
            }),
        ),
        (
            "report",
            "An operator with a selector, and counts of a traffic group.",
            ControlMessage::Report(Report {
                number: 5,
                incarnation: 0xBEEF,
                term: TERM,
                last: LAST,
                heard_ns: Some(100_000_000),
                at_ns: 9_000_000_000,
                selector: Some(0x5E1),
                selected: 1_000,
                copied: 990,
                counts: vec![(3, [10, 20, 30, 0])],
            }),
        ),
        (
            "inventory",
            "An operator that is RSNode 12, knows RSNode 13, and labels traffic group 3.",
            ControlMessage::Inventory(Inventory {
                number: 6,
                incarnation: 0xBEEF,
                term: TERM,
                last: SetNumber { loading: 2, sequence: 0 },
                last_rsnode: 13,
                rsnodes: vec![(12, None), (13, Some(at("10.0.0.2:7700")))],
                labels: vec![(3, 12)],
            }),
        ),
        (
            "done",
            "All orders were carried out but the first, for which there was no room.",
            ControlMessage::Done(Done {
                incarnation: 0xBEEF,
                term: TERM,
                number: LAST,
                selector: None,
                refused: vec![(0, 1)],
            }),
        ),
        (
            "refused",
            "The operator follows a later term.",
            ControlMessage::Refused(Refused { incarnation: 0xBEEF, term: TERM, last: LAST, why: Refusal::OlderTerm }),
        ),
    ]
}

fn written(message: &ControlMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(message, &mut bytes);
    bytes
}

#[test]
fn golden_messages_of_a_controller_are_written_and_read() {
    for (name, comment, message) in messages() {
        let bytes = written(&message);
        golden::assert_golden(&format!("cache_control/{name}"), comment, &bytes);
        assert_eq!(parse(&bytes), Ok(Some((message, bytes.len()))), "{name}");
    }
}

#[test]
fn the_page_has_every_structure() {
    assert_page_has("Control", &structures());
}

#[test]
fn a_message_is_read_once_it_is_there_as_a_whole() {
    for (name, _, message) in messages() {
        assert_read_as_a_whole(name, &written(&message), |bytes| parse(bytes).unwrap().map(|read| read.1));
    }
}

#[test]
fn n8_what_is_wrong_with_a_message_has_a_name() {
    let changed = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let (.., message) = messages().into_iter().find(|message| message.0 == name).unwrap();
        let mut bytes = written(&message);
        change(&mut bytes);
        parse(&bytes).err()
    };
    let set = |place: usize, byte: u8| move |bytes: &mut Vec<u8>| bytes[place] = byte;
    const HEAD: usize = size_of::<ControlHead>();
    assert_eq!(changed("ask", &set(0, 0)), Some(ControlReject::BadMagic));
    assert_eq!(changed("ask", &set(4, 2)), Some(ControlReject::BadVersion(2)));
    assert_eq!(changed("ask", &set(5, 7)), Some(ControlReject::Unknown));
    assert_eq!(changed("ask", &set(8, 1)), Some(ControlReject::TooLong));
    assert_eq!(changed("ask", &set(11, 31)), Some(ControlReject::BadLength), "shorter than an ASK");
    assert_eq!(changed("set", &set(HEAD + 36, 2)), Some(ControlReject::BadValue), "complete or not");
    for (name, place) in
        [("ask_inventory", 8), ("set", 0), ("report", 16), ("inventory", 16), ("done", 8), ("refused", 8)]
    {
        let largest = |bytes: &mut Vec<u8>| bytes[HEAD + place..HEAD + place + 8].fill(0xFF);
        assert_eq!(changed(name, &largest), Some(ControlReject::BadValue), "{name}: a term after which there is none");
    }
    let longer = |bytes: &mut Vec<u8>| {
        bytes[11] += 1;
        bytes.push(0);
    };
    assert_eq!(changed("ask", &longer), Some(ControlReject::BadLength));
    assert_eq!(changed("set", &set(HEAD + 34, 0xFF)), Some(ControlReject::TooLong), "orders");
    assert_eq!(changed("done", &set(HEAD + 42, 0xFF)), Some(ControlReject::TooLong), "refused orders");
    assert_eq!(changed("set", &set(HEAD + 35, 9)), Some(ControlReject::BadLength), "there are four");
    assert_eq!(changed("set", &set(HEAD + 40, 34)), Some(ControlReject::Unknown));
    assert_eq!(changed("set", &set(HEAD + 41, 1)), Some(ControlReject::BadLength), "a rule has no servers");
    let nobody = |bytes: &mut Vec<u8>| bytes[HEAD..HEAD + 16].fill(0);
    assert_eq!(changed("set", &nobody), Some(ControlReject::BadValue));
    for name in ["report", "inventory"] {
        let nameless = |bytes: &mut Vec<u8>| bytes[HEAD + 8..HEAD + 16].fill(0);
        assert_eq!(changed(name, &nameless), Some(ControlReject::BadValue), "{name}");
    }
    assert_eq!(changed("refused", &set(HEAD + 32, 4)), Some(ControlReject::Unknown));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    #[test]
    fn n8_any_bytes_of_a_stream_are_read_or_refused(kind in 0..8_u8, length in 0..300_u32, body in vec(any::<u8>(), 0..300)) {
        let _ = parse(&body);
        let head = [&CONTROL_MAGIC.to_be_bytes()[..], &[CONTROL_VERSION, kind, 0, 0], &length.to_be_bytes()].concat();
        let bytes = [head, body].concat();
        if let Ok(Some((message, length))) = parse(&bytes) {
            let again = written(&message);
            prop_assert_eq!(again.len(), length);
            prop_assert_eq!(parse(&again), Ok(Some((message, length))));
        }
    }

    #[test]
    fn n8_a_message_with_a_wrong_byte_is_read_or_refused(which in 0..7_usize, at: prop::sample::Index, byte: u8) {
        let mut bytes = written(&messages()[which].2);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(Some((message, _))) = parse(&bytes) {
            prop_assert_eq!(parse(&written(&message)).map(|read| read.map(|read| read.0)), Ok(Some(message)));
        }
    }
}
