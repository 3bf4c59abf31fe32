//! Tests the history checker with hand-made violations and against another checker.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_spec::store::history::{BYTES_MAX, Call, History, Outcome, Record, Verdict};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::RngSeed;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

fn record(process: u64, call: Call, result: impl Into<Option<Outcome>>, start_ns: u64, end_ns: u64) -> Record {
    let result = result.into();
    let end_ns = result.is_some().then_some(end_ns);
    Record { process, call, key: "k".into(), result, start_ns, end_ns }
}

fn put(value: &str) -> Call {
    Call::Put(value.into())
}

fn value(value: &str) -> Outcome {
    Outcome::Value(value.into())
}

fn check(operations: Vec<Record>) -> Verdict {
    check_within(BYTES_MAX, operations)
}

fn check_within(bytes_max: usize, operations: Vec<Record>) -> Verdict {
    History { operations }.check(bytes_max, &|| false)
}

fn violation(operations: Vec<Record>) -> String {
    match check(operations) {
        Verdict::Violation(violation) => violation.to_string(),
        other => panic!("{other:?}"),
    }
}

fn is_right(operations: Vec<Record>) -> bool {
    check(operations) == Verdict::Linearizable
}

#[test]
fn r1_a_stale_read_is_found_and_told() {
    let stale = vec![
        record(1, put("1"), Outcome::Done, 0, 10),
        record(1, put("2"), Outcome::Done, 20, 30),
        record(2, Call::Get, value("1"), 40, 50),
        record(3, put("3"), None, 45, 0),
    ];
    assert_eq!(
        violation(stale),
        "key \"k\" is not linearizable: nothing explains
  process 2: Get gave Value(\"1\"), from 40 to 50 ns
The key may have held then: \"2\", \"3\"
Ended before it:
  process 1: Put(\"1\") gave Done, from 0 to 10 ns
  process 1: Put(\"2\") gave Done, from 20 to 30 ns
Under way at its end:
  process 3: Put(\"3\") with an unknown outcome, from 45 ns on
"
    );
}

#[test]
fn r1_an_operation_that_was_refused_has_no_effect_and_keys_do_not_touch_each_other() {
    let mut operations =
        vec![record(1, put("1"), Outcome::Failed, 0, 10), record(2, Call::Get, Outcome::NotFound, 20, 30)];
    assert!(is_right(operations.clone()));
    operations.push(Record { key: "other".into(), ..record(2, Call::Get, value("1"), 40, 50) });
    assert!(violation(operations).starts_with("key \"other\" is not linearizable"));
}

/// What a serial store answers to many concurrent clients, on one key.
fn busy_history(operations: usize, processes: usize, unknown_percent: u32, seed: u64) -> Vec<Record> {
    let mut rng = Pcg32::seed_from_u64(seed);
    let (mut value, mut now) = (None::<String>, 0);
    let mut under_way: Vec<Option<Record>> = vec![None; processes];
    let mut took_effect = vec![false; processes];
    let mut done = Vec::new();
    while done.len() < operations {
        now += 1;
        let process = rng.random_range(0..processes);
        let Some(record) = &mut under_way[process] else {
            let call = random_call(&mut rng, now);
            took_effect[process] = false;
            under_way[process] = Some(begun(process, call, now));
            continue;
        };
        if !took_effect[process] {
            let (outcome, next) = record.call.run(value.as_deref());
            (value, record.result, took_effect[process]) = (next, Some(outcome), true);
            continue;
        }
        record.end_ns = Some(now);
        if rng.random_range(0..100) < unknown_percent {
            (record.result, record.end_ns) = (None, None);
        }
        done.extend(under_way[process].take());
    }
    done.extend(under_way.into_iter().flatten().map(|record| Record { result: None, ..record }));
    done
}

fn begun(process: usize, call: Call, start_ns: u64) -> Record {
    Record { process: process as u64, call, key: "k".into(), result: None, start_ns, end_ns: None }
}

fn random_call(rng: &mut Pcg32, now: u64) -> Call {
    match rng.random_range(0..9) {
        0 | 1 => Call::Put(format!("v{now}")),
        2 => Call::Delete,
        3 => Call::Exists,
        4 => Call::Incr(1),
        5 => Call::Cas(format!("v{}", now - rng.random_range(1..now.clamp(2, 30))), "1".into()),
        6 => Call::Create(format!("c{now}")),
        _ => Call::Get,
    }
}

/// Verdicts for that history, and for one whose last GET returned an unwritten value.
fn verdicts(unknown_percent: u32, seed: u64, bytes_max: usize) -> [Verdict; 2] {
    let mut operations = busy_history(10_000, 16, unknown_percent, seed);
    let right = check(operations.clone());
    let last = operations.iter().rposition(|record| matches!(record.result, Some(Outcome::Value(_)))).unwrap();
    operations[last].result = Some(value("never written"));
    [right, check_within(bytes_max, operations)]
}

#[test]
fn r1_ten_thousand_operations_of_16_clients_on_one_key_are_few_situations() {
    let [right, wrong] = verdicts(0, 1, 256 << 20);
    assert!(right == Verdict::Linearizable && matches!(wrong, Verdict::Violation(_)));
    // A hundred operations with unknown outcomes leave too many orders to refute, but none is found.
    let [right, wrong] = verdicts(1, 3, 32 << 20);
    assert!(right == Verdict::Linearizable && wrong != Verdict::Linearizable);
}

#[test]
fn r1_a_search_that_is_too_hard_ends_and_says_so() {
    // Each subset has another sum.
    let mut operations: Vec<_> = (0..30).map(|n| record(n, Call::Incr(1 << n), None, 0, 0)).collect();
    operations.push(record(99, Call::Get, value("never written"), 10, 20));
    let furthest = Box::new(operations[30].clone());
    let too_hard = Verdict::TooHard { key: "k".into(), operations: 31, furthest };
    assert_eq!(check_within(100_000, operations.clone()), too_hard);
    assert_eq!(History { operations }.check(BYTES_MAX, &|| true), too_hard, "it is late");
}

#[test]
fn r1_what_many_clients_did_at_once_takes_little_memory() {
    // All begin before the first one ends.
    let puts = |count| (0..count).map(move |n| record(n, put(&format!("v{n}")), Outcome::Done, n, count + n));
    assert_eq!(check_within(16 << 20, puts(60_000).collect()), Verdict::Linearizable);
    let unknown = |count| (0..count).map(move |n| record(n, put(&format!("v{n}")), None, n, 0));
    let read = record(0, Call::Get, value("v7"), 70_000, 70_001);
    assert_eq!(check_within(16 << 20, unknown(60_000).chain([read]).collect()), Verdict::Linearizable);
}

#[test]
fn r1_sums_of_unknown_increments_end_within_their_bound() {
    let incr = |n: u64| record(n, Call::Incr(1 << (n % 60)), None, 0, 0);
    let read = |sum: u64| record(999, Call::Get, value(&sum.to_string()), 10, 20);
    let with = |sum| (0..300).map(incr).chain([read(sum)]).collect();
    assert_eq!(check_within(16 << 20, with(1 << 59)), Verdict::Linearizable);
    assert!(matches!(check_within(16 << 20, with(u64::MAX)), Verdict::TooHard { operations: 301, .. }));
}

#[test]
fn r1_a_violation_counts_for_more_than_a_key_that_is_too_hard() {
    let mut operations: Vec<_> = (0..30).map(|n| record(n, Call::Incr(1 << n), None, 0, 0)).collect();
    operations.push(record(99, Call::Get, value("never written"), 10, 20));
    operations.push(Record { key: "z".into(), ..record(1, Call::Get, value("1"), 0, 10) });
    assert!(matches!(check_within(100_000, operations), Verdict::Violation(found) if found.operation.key == "z"));
}

#[test]
fn histories_are_read_as_they_were_written() {
    let operations = busy_history(200, 4, 10, 5);
    let history = History { operations };
    let mut lines = Vec::new();
    history.write(&mut lines).unwrap();
    assert_eq!(History::read(&lines[..]).unwrap(), history);
}

#[test]
fn the_lines_are_those_of_the_documentation() {
    let documented = include_str!("../../../docs/histories.md");
    let lines: Vec<_> = documented.lines().filter(|line| line.starts_with('{')).collect();
    assert!(lines.len() >= 8, "an example of each operation");
    let history = History::read(lines.join("\n").as_bytes()).unwrap();
    assert_eq!(history.check(BYTES_MAX, &|| false), Verdict::Linearizable);
    let mut written = Vec::new();
    history.write(&mut written).unwrap();
    let as_json = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Record>>();
    assert_eq!(as_json(&String::from_utf8(written).unwrap()), as_json(&lines.join("\n")));
}

#[test]
fn bad_lines_are_named_with_what_is_wrong() {
    let error = |line: &str| {
        let text = format!("{{\"process\":1,\"operation\":\"get\",\"key\":\"a\",\"start_ns\":1}}\n\n{line}\n");
        History::read(text.as_bytes()).expect_err(line).to_string()
    };
    assert!(error("{").starts_with("line 3 is no operation: EOF while parsing"));
    let unknown = error("{\"process\":1,\"operation\":\"steal\",\"key\":\"a\",\"start_ns\":1}");
    assert!(unknown.contains("unknown variant `steal`"), "{unknown}");
    let missing = error("{\"process\":1,\"operation\":\"get\",\"start_ns\":1}");
    assert!(missing.contains("missing field `key`"), "{missing}");
    let argument = error("{\"process\":1,\"operation\":\"incr\",\"argument\":\"x\",\"key\":\"a\",\"start_ns\":1}");
    assert!(argument.contains("invalid type: string \"x\", expected i64"), "{argument}");
    let end = error("{\"process\":1,\"operation\":\"get\",\"key\":\"a\",\"result\":\"not_found\",\"start_ns\":1}");
    assert!(end.contains("`end_ns` is missing"), "{end}");
    let result = "{\"process\":1,\"operation\":\"get\",\"key\":\"a\",\"result\":\"done\",\"start_ns\":1,\"end_ns\":2}";
    assert!(error(result).contains("`result` Done is none of the operation Get"), "{}", error(result));
    let time =
        "{\"process\":1,\"operation\":\"get\",\"key\":\"a\",\"result\":\"not_found\",\"start_ns\":3,\"end_ns\":2}";
    assert!(error(time).contains("`end_ns` 2 is before `start_ns` 3"));
}

/// The same for stateright's tester, an independent implementation.
#[derive(Clone, Debug)]
struct Register(Option<String>);

impl SequentialSpec for Register {
    type Op = Call;
    type Ret = Outcome;

    fn invoke(&mut self, call: &Call) -> Outcome {
        let (outcome, value) = call.run(self.0.as_deref());
        self.0 = value;
        outcome
    }
}

fn is_right_for_stateright(operations: &[Record]) -> bool {
    let mut tester = LinearizabilityTester::new(Register(None));
    // At equal times beginnings come first.
    let begins = operations.iter().enumerate().map(|(at, record)| (record.start_ns, 0, at));
    let ends = operations.iter().enumerate().filter_map(|(at, record)| Some((record.end_ns?, 1, at)));
    let mut events: Vec<_> = begins.chain(ends).collect();
    events.sort_unstable();
    for (_, is_end, at) in events {
        let record = &operations[at];
        match (is_end, &record.result) {
            (0, _) => drop(tester.on_invoke(at, record.call.clone())),
            (_, Some(result)) => drop(tester.on_return(at, result.clone())),
            _ => {}
        }
    }
    tester.is_consistent()
}

fn small_call() -> impl Strategy<Value = Call> {
    let value = || proptest::sample::select(vec!["1", "2", "a", "b"]).prop_map(str::to_owned);
    prop_oneof![
        3 => Just(Call::Get),
        1 => Just(Call::Exists),
        2 => value().prop_map(Call::Put),
        1 => Just(Call::Delete),
        2 => (value(), value()).prop_map(|(expected, new)| Call::Cas(expected, new)),
        1 => value().prop_map(Call::Create),
        2 => (1..3_i64).prop_map(Call::Incr),
    ]
}

/// A linearizable history (each operation takes effect within its time), with the results of some changed to those
/// after another value, or made unknown.
fn small_history() -> impl Strategy<Value = Vec<Record>> {
    let operation = (
        small_call(),
        0..40_u64,
        0..20_u64,
        0..=20_u64,
        0..10_u8,
        proptest::option::of(proptest::sample::select(vec!["1", "2", "a", "b"])),
    );
    proptest::collection::vec(operation, 1..9).prop_map(|drawn| {
        let mut order: Vec<usize> = (0..drawn.len()).collect();
        order.sort_by_key(|&at| drawn[at].1 * 20 + drawn[at].2 * drawn[at].3);
        let mut records: Vec<Option<Record>> = vec![None; drawn.len()];
        let mut value = None::<String>;
        for at in order {
            let (call, start, length, _, change, other) = &drawn[at];
            let (right, next) = call.run(value.as_deref());
            let result = match change {
                0 => Some(call.run(*other).0),
                1 | 2 => None,
                _ => Some(right),
            };
            // Half of the unknown ones did not take effect.
            if *change != 2 {
                value = next;
            }
            records[at] = Some(record(at as u64, call.clone(), result, *start, start + length));
        }
        records.into_iter().flatten().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40_000, failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    #[test]
    fn r1_the_verdict_is_that_of_stateright(operations in small_history()) {
        let verdict = check(operations.clone());
        let expected = is_right_for_stateright(&operations);
        prop_assert_eq!(verdict == Verdict::Linearizable, expected, "{:?}", verdict);
    }
}

/// Brute force: tries each order of all ended operations and any subset of the unknown ones.
fn is_right_by_force(left: &[Record], value: Option<&str>) -> bool {
    // The first to end must come before anything that begins later.
    let first_end = left.iter().filter_map(|record| record.end_ns).min();
    let Some(first_end) = first_end else { return true };
    left.iter().enumerate().filter(|(_, record)| record.start_ns <= first_end).any(|(at, record)| {
        let (outcome, next) = record.call.run(value);
        let fits = record.result.as_ref().is_none_or(|result| *result == outcome);
        fits && is_right_by_force(&[&left[..at], &left[at + 1..]].concat(), next.as_deref())
    })
}

/// Many equal operations with unknown outcomes, at equal times.
fn unknown_history() -> impl Strategy<Value = Vec<Record>> {
    let operation = (small_call(), 0..6_u64, 0..4_u64, proptest::bool::weighted(0.6), proptest::option::of(1..3_u8));
    proptest::collection::vec(operation, 1..7).prop_map(|drawn| {
        let record = |(at, (call, start, length, is_known, before)): (u64, (Call, u64, u64, bool, Option<u8>))| {
            let result = is_known.then(|| call.run(before.map(|before| before.to_string()).as_deref()).0);
            record(at, call, result, start, start + length)
        };
        (0..).zip(drawn).map(record).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, rng_seed: RngSeed::Fixed(41), ..ProptestConfig::default() })]

    #[test]
    fn r1_the_verdict_is_that_of_all_orders(operations in unknown_history()) {
        let verdict = check(operations.clone());
        prop_assert_eq!(verdict == Verdict::Linearizable, is_right_by_force(&operations, None), "{:?}", verdict);
    }
}

#[test]
fn small_histories_are_right_and_wrong() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for histories in [small_history().boxed(), unknown_history().boxed()] {
        let mut draw = || histories.new_tree(&mut runner).unwrap().current();
        let wrong = (0..500).filter(|_| !is_right(draw())).count();
        assert!((50..450).contains(&wrong), "{wrong} of 500 are wrong");
    }
}
