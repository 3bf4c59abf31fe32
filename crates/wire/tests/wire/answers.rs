//! Which packet answers which (`docs/wire.md`); no unknown sender gets more bytes from a switch than it sent (T13).

use crate::agreement::{link_text, read, table_after};
use crate::properties::{Shape, shapes};
use midflight_wire::tasks::*;
use midflight_wire::*;

/// Responses to a sender known by its cookie, a slot's sequence, an identity with its address, or a proof. They may exceed the
/// request.
const KNOWN: [&str; 6] = ["REGISTERED", "ASSIGN", "PROBE_ACK", "CANCEL_ACK", "COMPLETE", "STOP"];

/// A line of the table of operations: the operation's name and those of its responses.
struct Answers {
    question: String,
    by: Vec<String>,
}

fn documented() -> Vec<Answers> {
    let read_row = |row: &Vec<String>| Answers {
        question: link_text(&row[1]).to_owned(),
        by: row[5].split(", ").filter(|answer| *answer != "nothing").map(str::to_owned).collect(),
    };
    table_after(&read("docs/wire.md"), "## Operations").iter().map(read_row).collect()
}

/// `SUBMIT_ACK` in the table is `SubmitAck` here.
fn shape(name: &str) -> Option<Shape> {
    let of_rust = |shape: &Shape| format!("{:?}", shape.operation).to_uppercase();
    shapes().into_iter().find(|shape| of_rust(shape) == name.replace('_', ""))
}

fn longest(answer: &str, asked: u8) -> usize {
    match shape(answer) {
        Some(shape) => shape.bytes(asked.min(*shape.count.end())),
        None => size_of::<Version>(),
    }
}

#[test]
fn t13_answers_without_a_cookie_are_not_longer_than_their_questions() {
    let mut pairs = 0;
    for Answers { question, by } in documented() {
        let Some(asking) = shape(&question) else { continue };
        for answer in by.iter().filter(|answer| !KNOWN.contains(&answer.as_str())) {
            for count in asking.count.clone() {
                let (asked, answered) = (asking.bytes(count), longest(answer, count));
                assert!(answered <= asked, "{question} with {count}: {asked} bytes, its {answer} {answered}");
                pairs += 1;
            }
        }
    }
    assert!(pairs > 300, "the table was not read: {pairs} pairs of question and answer");
}

/// The parser must read as many bytes as VERSION has before it detects another version.
#[test]
fn t13_version_is_not_longer_than_anything_that_it_answers() {
    let mut question = [0; size_of::<Version>()];
    question[..4].copy_from_slice(&[0x4D, 0x46, VERSION + 1, 1]);
    assert_eq!(parse(&question).err(), Some(Reject::BadVersion(VERSION + 1)));
    for length in 0..question.len() {
        assert_eq!(parse(&question[..length]).err(), Some(Reject::Truncated));
    }
}

/// Exactly the packets with a field for a cookie are answered with COOKIE.
#[test]
fn t13_cookie_answers_whatever_has_a_field_for_one() {
    let of_docs: Vec<String> = documented()
        .into_iter()
        .filter(|answers| answers.by.iter().any(|answer| answer == "COOKIE"))
        .map(|answers| answers.question.replace('_', ""))
        .collect();
    let of_rust: Vec<String> = midflight_wire::tasks::structures()
        .into_iter()
        .filter(|(name, _, fields)| *name != "Cookie" && fields.iter().any(|field| field.name == "cookie"))
        .map(|(name, ..)| name.to_uppercase())
        .collect();
    assert_eq!(of_docs, of_rust);
}

/// Exactly the packets to a switch are answered with VERSION.
#[test]
fn t11_version_answers_whatever_is_sent_to_a_switch() {
    let page = read("docs/wire.md");
    for (row, answers) in table_after(&page, "## Operations").iter().zip(documented()) {
        let to_switch = row[2].ends_with("→ switch");
        assert_eq!(answers.by.iter().any(|answer| answer == "VERSION"), to_switch, "{}", answers.question);
        assert!(answers.by.iter().all(|answer| answer == "VERSION" || shape(answer).is_some()), "{:?}", answers.by);
    }
}
