//! Small instances of the safe queue, searched to the end: seconds. `examples/check.rs` has large ones.

use midflight_rmt::tasks::check::{Instance, Order, Subject, Task, Told, Verdict, run};
use midflight_rmt::tasks::safe::{Config, Safe};
use midflight_rmt::{Machine, Packet, Sent, Target, Word};

const A: u8 = 1;
const B: u8 = 2;

/// Serial numbers wrap within each run, and so do the pointers of two levels.
const START: u32 = u32::MAX - 2;

/// The safe queue, set up by a controller that grants one place too many.
struct Generous(Safe);

impl Subject for Generous {
    fn levels(&self) -> u8 {
        self.0.levels()
    }

    fn size(&self) -> usize {
        self.0.size() + 1
    }

    fn machine(&self, start: u32) -> Machine {
        let mut machine = Subject::machine(&self.0, start);
        for name in ["credit", "credit_seen"] {
            let register = self.0.program().register(name).expect("a register");
            let limit = machine.read(register, 0, Word::Low);
            machine.write(register, 0, Word::Low, limit.wrapping_add(1));
        }
        machine
    }

    fn submit(&self, client: u8, tasks: &[Task]) -> Packet {
        Subject::submit(&self.0, client, tasks)
    }

    fn retrieve(&self, executor: u8, resources: u8) -> Packet {
        Subject::retrieve(&self.0, executor, resources)
    }

    fn told(&self, sent: &Sent) -> Told {
        self.0.told(sent)
    }

    fn queued(&self, machine: &Machine, level: u8) -> Vec<u32> {
        self.0.queued(machine, level)
    }

    fn held(&self, packet: &Packet) -> Option<u32> {
        self.0.held(packet)
    }

    fn asks(&self, packet: &Packet) -> Option<u8> {
        self.0.asks(packet)
    }

    fn sound(&self, _: &Machine, _: u8, _: usize) -> Result<(), String> {
        Ok(())
    }

    fn tidy(&self, machine: &mut Machine, flight: &mut [Packet]) {
        self.0.tidy(machine, flight);
    }

    fn describe(&self, packet: &Packet) -> String {
        self.0.describe(packet)
    }
}

fn search(config: Config, instance: &Instance) -> Verdict {
    let safe = Safe::build(config, &Target::TOFINO_1).expect("it fits");
    let verdict = run(safe, instance, 1);
    println!("{} states, {} steps, depth {}, {:?}", verdict.states, verdict.steps, verdict.depth, verdict.seen);
    if let Some(violation) = verdict.violations.first() {
        panic!("{}: {}\n{}", violation.broken.rule, violation.broken.what, violation.transcript);
    }
    assert!(verdict.exhaustive);
    verdict
}

fn queue(size: u32) -> Config {
    Config { levels: 2, size, words: 1 }
}

#[test]
fn t3_without_searches_order_is_exact() {
    // Enough for credit that is late: it was read, and others have filled the queue anew before it arrives.
    let jobs = vec![vec![(1, 0), (1, 0)], vec![(1, 0)], vec![(1, 0), (2, 0)]];
    let executors = vec![(0, 2), (0, 1)];
    let instance = Instance { start: START, jobs, retries: 1, executors, ..Instance::default() };
    assert_eq!(instance.order(), Order::Exact);
    let seen = search(queue(2), &instance).seen;
    assert!(seen.assigned > 0 && seen.refused > 0 && seen.no_ops > 0);
    assert_eq!(seen.held, 0);
}

#[test]
fn t3_one_search_at_a_time_leaves_the_queue_in_order() {
    let jobs = vec![vec![(1, A), (1, B)], vec![(1, A)]];
    let instance =
        Instance { start: START, jobs, retries: 0, executors: vec![(B, 2), (A | B, 2)], ..Instance::default() };
    assert_eq!(instance.order(), Order::Kept);
    let seen = search(queue(4), &instance).seen;
    assert!(seen.assigned > 0 && seen.no_ops > 0 && seen.held > 0);
}

#[test]
fn t1_t2_t5_t7_crossing_searches_lose_nothing() {
    let jobs = vec![vec![(1, A), (2, B)], vec![(1, B)], vec![(1, A)]];
    let instance =
        Instance { start: START, jobs, retries: 0, executors: vec![(A, 2), (B, 2), (A | B, 1)], ..Instance::default() };
    assert_eq!(instance.order(), Order::Held);
    let seen = search(queue(2), &instance).seen;
    assert!(seen.assigned > 0 && seen.refused > 0 && seen.no_ops > 0 && seen.held > 0);
}

/// What the checker says of a queue that may be overrun, in as few steps as there are.
#[test]
fn t1_an_overwritten_entry_is_found() {
    let safe = Safe::build(queue(2), &Target::TOFINO_1).expect("it fits");
    let jobs = vec![vec![(1, 0), (1, 0)], vec![(1, 0)], vec![(2, 0)]];
    let instance = Instance { start: START, jobs, retries: 0, executors: vec![(0, 2)], ..Instance::default() };
    let verdict = run(Generous(safe), &instance, 1);
    let [violation] = &verdict.violations[..] else { panic!("{verdict:?}") };
    assert_eq!((violation.broken.rule, violation.broken.what.as_str()), ("T1", "task 1 is lost"));
    assert_eq!(violation.steps, 3, "three tasks enter a queue of two\n{}", violation.transcript);
    assert!(violation.transcript.contains("client 1 submits 3"), "{}", violation.transcript);
}

/// What is not kept: searches that cross change the order of tasks that neither could run.
#[test]
fn crossing_searches_change_the_order() {
    let jobs = vec![vec![(1, A), (1, A), (1, A)]];
    // Who could run them does not ask.
    let executors = vec![(B, 1), (B, 1), (A, 0)];
    let order = Some(Order::Kept);
    let instance = Instance { start: 0, jobs, retries: 0, executors, order, ..Instance::default() };
    let safe = Safe::build(Config { levels: 1, size: 4, words: 1 }, &Target::TOFINO_1).expect("it fits");
    let verdict = run(safe, &instance, 1);
    let [violation] = &verdict.violations[..] else { panic!("{verdict:?}") };
    println!("{}: {}\n{}", violation.broken.rule, violation.broken.what, violation.transcript);
    assert_eq!(violation.broken.rule, "T3");
}
