//! Searches a large instance: `cargo run --release -p midflight-rmt --features check --example check`.
//!
//! Arguments: the instance, threads, and at most how many states. Of the safe queue: `crossing` (the default), `ordered`, `kept` and
//! `batches`, which break no rule. Of the published one: `published-full`, `published-idle`, `published-carried` and
//! `published-lost`, which do; `published-silence` and `published-search`, which do not.

use midflight_rmt::tasks::check::{Instance, Subject, run};
use midflight_rmt::tasks::published::{self, Empty, Published};
use midflight_rmt::tasks::safe::{Config, Safe};
use midflight_rmt::{Refusal, Target};
use std::time::Instant;

/// Just before the serial numbers, and the pointers of two levels, wrap.
const START: u32 = u32::MAX - 2;

fn instance(name: &str) -> Option<(Config, Instance)> {
    let (a, b) = (1, 2);
    let (size, jobs, retries, executors) = match name {
        // Three executors of which two search, and cross.
        "crossing" => (
            4,
            vec![vec![(1, a), (2, b)], vec![(1, a), (1, b)], vec![(1, b), (2, 0)]],
            1,
            vec![(a, 3), (b, 3), (a | b, 2)],
        ),
        // Nobody searches.
        "ordered" => (
            2,
            vec![vec![(1, 0), (2, 0), (1, 0)], vec![(1, 0), (1, 0)], vec![(2, 0), (1, 0)]],
            1,
            vec![(0, 3), (0, 3), (0, 3)],
        ),
        // One searches.
        "kept" => (
            4,
            vec![vec![(1, a), (1, b)], vec![(1, a), (2, b)], vec![(1, b), (1, 0)]],
            1,
            vec![(b, 3), (a | b, 3), (a | b, 2)],
        ),
        // A queue of two that is full most of the time.
        "batches" => (
            2,
            vec![vec![(1, a), (1, b), (2, a)], vec![(1, b), (1, a)], vec![(1, 0), (2, 0)]],
            1,
            vec![(a, 2), (b, 2), (a | b, 2)],
        ),
        _ => return None,
    };
    Some((
        Config { levels: 2, size, words: 1 },
        Instance { start: START, jobs, retries, executors, ..Instance::default() },
    ))
}

/// The published queue, and what is asked of it: `docs/internals/asic-hazards.md`.
fn published_instance(name: &str) -> Option<(published::Config, Instance)> {
    let (a, b) = (1, 2);
    let (plain, wants_a) = (vec![(1, 0)], vec![(1, a)]);
    let start = START;
    let instance = match name {
        // Hazard 1.
        "published-full" => Instance {
            jobs: vec![vec![(1, 0); 4], vec![(1, 0); 2], plain.clone(), plain],
            executors: vec![(0, 2)],
            informed: true,
            rules: Some(vec!["T1"]),
            ..Instance::default()
        },
        // Hazard 9.
        "published-idle" => Instance {
            jobs: vec![vec![(1, 0); 3], vec![(1, 0); 2], plain],
            executors: vec![(0, 2)],
            rules: Some(vec!["T1"]),
            ..Instance::default()
        },
        // Hazard 5.
        "published-carried" => Instance {
            jobs: vec![wants_a.repeat(4), wants_a.clone(), wants_a],
            executors: vec![(b, 2), (a, 4)],
            informed: true,
            rules: Some(vec!["T1"]),
            ..Instance::default()
        },
        // Hazard 7.
        "published-lost" => Instance {
            jobs: vec![wants_a.repeat(2), wants_a],
            executors: vec![(b, 2), (a, 2)],
            drops: 1,
            rules: Some(vec!["registers"]),
            ..Instance::default()
        },
        // Hazard 2: none.
        "published-silence" => Instance {
            jobs: vec![vec![(1, 0); 4], vec![(1, 0); 2], vec![(1, 0); 2]],
            executors: vec![(0, 3)],
            retries: 1,
            rules: Some(vec!["T7"]),
            ..Instance::default()
        },
        // Hazard 5 while no pointer errs: none.
        "published-search" => Instance {
            jobs: vec![vec![(1, a), (1, b)], vec![(1, a), (1, b)]],
            executors: vec![(a, 2), (b, 2), (a | b, 2)],
            informed: true,
            rules: Some(vec!["T1", "T2", "T5", "T7", "progress"]),
            ..Instance::default()
        },
        _ => return None,
    };
    let config = published::Config { levels: 1, size: 4, words: 1, empty: Empty::NoOp };
    Some((config, Instance { start, ..instance }))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("crossing", String::as_str);
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<usize>().ok());
    let (threads, limit) = (number(1).unwrap_or(1), number(2));
    let target = &Target::TOFINO_1;
    let broken = match (instance(name), published_instance(name)) {
        (Some((config, of)), _) => search(name, Safe::build(config, target), Instance { limit, ..of }, threads),
        (_, Some((config, of))) => search(name, Published::build(config, target), Instance { limit, ..of }, threads),
        _ => Err(format!("no instance {name}")),
    };
    let code = broken.map_or_else(
        |why| {
            eprintln!("{why}");
            2
        },
        i32::from,
    );
    std::process::exit(code);
}

/// Whether a rule breaks.
fn search<S: Subject>(
    name: &str,
    subject: Result<S, Refusal>,
    instance: Instance,
    threads: usize,
) -> Result<bool, String> {
    let subject = subject.map_err(|refusal| refusal.to_string())?;
    let start = Instant::now();
    let verdict = run(subject, &instance, threads);
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}: order {:?}", instance.order());
    println!("{} states, {} steps, depth {}, {seconds:.0} s", verdict.states, verdict.steps, verdict.depth);
    println!("{}", if verdict.exhaustive { "all states" } else { "not all states" });
    println!("{:?}", verdict.seen);
    for violation in &verdict.violations {
        println!("{}: {}\n{}", violation.broken.rule, violation.broken.what, violation.transcript);
    }
    Ok(!verdict.violations.is_empty())
}
