//! Searches a large instance of the safe queue: `cargo run --release -p midflight-rmt --features check --example check`.
//!
//! Arguments: the instance (`crossing`, `ordered`, `kept` or `batches`; the first is the default), threads, and at most how many states.

use midflight_rmt::Target;
use midflight_rmt::tasks::check::{Instance, run};
use midflight_rmt::tasks::safe::{Config, Safe};
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
    Some((Config { levels: 2, size }, Instance { start: START, jobs, retries, executors, order: None, limit: None }))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("crossing", String::as_str);
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<usize>().ok());
    let Some((config, mut instance)) = instance(name) else {
        eprintln!("no instance {name}");
        std::process::exit(2);
    };
    instance.limit = number(2);
    let safe = match Safe::build(config, &Target::TOFINO_1) {
        Ok(safe) => safe,
        Err(refusal) => {
            eprintln!("{refusal}");
            std::process::exit(2);
        }
    };
    let start = Instant::now();
    let verdict = run(safe, &instance, number(1).unwrap_or(1));
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}: order {:?}", instance.order());
    println!("{} states, {} steps, depth {}, {seconds:.0} s", verdict.states, verdict.steps, verdict.depth);
    println!("{}", if verdict.exhaustive { "all states" } else { "not all states" });
    println!("{:?}", verdict.seen);
    for violation in &verdict.violations {
        println!("{}: {}\n{}", violation.broken.rule, violation.broken.what, violation.transcript);
    }
    std::process::exit(i32::from(!verdict.violations.is_empty()));
}
