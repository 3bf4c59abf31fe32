//! Checks that the size of a queue does not matter: the small instances in larger queues. `midflight-lab check asic --full` has all of
//! them.

use midflight_rmt::tasks::check::instances::{Named, named, planted_grown};
use midflight_rmt::tasks::check::{Verdict, shifted};
use midflight_rmt::tasks::safe::{Config, Safe};
use midflight_rmt::{Target, Watch};

/// Instances of few states.
const SMALL: [&str; 4] = ["ordered-small", "kept-small", "credit-small", "lacking-small"];

fn searched(named: &Named) -> Verdict {
    named.search(1, &Watch::default()).unwrap_or_else(|refusal| panic!("{}: {refusal}", named.name))
}

/// Without more granted places, unused entries change nothing: exactly the same number of states.
#[test]
fn more_entries_than_places_change_nothing() {
    for name in SMALL {
        let named = named(name).expect("an instance");
        let (small, large) = (searched(&named), searched(&named.of_size(8, 0)));
        assert_eq!((small.states, small.steps, small.depth), (large.states, large.steps, large.depth), "{name}");
        assert_eq!((small.seen, large.violations.len()), (large.seen, 0), "{name}");
    }
}

/// A queue of three and four places instead of two, of five and six instead of four.
#[test]
fn t1_to_t7_longer_queues_keep_the_rules_too() {
    for name in ["kept-small", "credit-small", "lacking-small"] {
        for more in [1, 2] {
            let verdict = searched(&named(name).expect("an instance").of_size(8, more));
            assert!(verdict.exhaustive && verdict.violations.is_empty(), "{name}, {more} more: {verdict:?}");
        }
    }
}

/// Defects that show in few steps. With four entries that takes more steps, but no other queue.
#[test]
fn t1_to_t7_planted_defects_are_found_with_four_entries_too() {
    let few = |named: &Named| matches!(named.finds, Some((_, steps)) if steps < 4);
    for named in planted_grown().into_iter().filter(few) {
        let verdict = searched(&named);
        assert!(!verdict.violations.is_empty(), "{}: nothing", named.name);
    }
}

/// Only differences of pointers and of credit count: each step leads to the same state after all were moved.
#[test]
fn numbers_may_begin_anywhere() {
    let config = Config { levels: 2, size: 2, words: 1 };
    for by in [1, 2, 7, u32::MAX - 1, 1 << 31] {
        let instance = named("crossing-small").expect("an instance").instance;
        let safe = Safe::build(config, &Target::TOFINO_1).expect("it fits");
        let steps = shifted(safe, &instance, by, &Watch::default()).unwrap_or_else(|broken| panic!("{by}: {broken:?}"));
        assert!(steps > 9_000, "{steps}");
    }
}

/// Programs of different sizes differ only in the number of entries and the bits that number them.
#[test]
fn the_size_is_nowhere_in_the_program_but_in_the_index() {
    let text = |size: u32| {
        let config = Config { levels: 4, size, words: 1 };
        let program = Safe::build(config, &Target::TOFINO_1).expect("it fits").program().clone();
        let registers = &program.report().registers;
        let mut entries = registers.iter().filter(|register| register.name.starts_with("entry_"));
        assert!(entries.all(|register| register.cells == 4 * size));
        let tables =
            ["kind", "accepted", "enter", "tail", "queued_1_2", "queued_3_4", "retrieve", "next", "route", "credit"];
        (program.stages(), tables.map(|table| program.entries(table).expect("a table")))
    };
    assert_eq!(text(2), text(32 << 10));
}
