//! Exhaustive searches of small instances of the safe queue, each of seconds. `midflight-lab check asic --full` has large ones.

mod common;
#[path = "common/ways.rs"]
mod ways;

use midflight_rmt::tasks::check::instances::{Judgement, named};
use midflight_rmt::tasks::check::{Instance, Order, PassOutcome, Subject, Task, run};
use midflight_rmt::tasks::safe::{Config, Safe};
use midflight_rmt::{Machine, Packet, Sent, Target, Watch, Word};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use ways::{page_shows_way, searched};

/// Serial numbers wrap within each run, and so do the pointers of two levels.
const START: u32 = u32::MAX - 2;

/// The safe queue with a controller that grants one place too many.
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

    fn asker(&self, packet: &Packet) -> Option<u8> {
        self.0.asker(packet)
    }

    fn told(&self, sent: &Sent) -> PassOutcome {
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

#[test]
fn t3_without_searches_order_is_exact() {
    let instance = named("ordered-small").expect("an instance").instance;
    assert_eq!(instance.order(), Order::Exact);
    let seen = searched("ordered-small").seen;
    assert!(seen.assigned > 0 && seen.refused > 0 && seen.no_ops > 0);
    assert_eq!(seen.held, 0);
}

#[test]
fn t3_one_search_at_a_time_leaves_the_queue_in_order() {
    let instance = named("kept-small").expect("an instance").instance;
    assert_eq!(instance.order(), Order::Kept);
    let seen = searched("kept-small").seen;
    assert!(seen.assigned > 0 && seen.no_ops > 0 && seen.held > 0);
}

/// The credit of one level does not serve another; no executor gets a task whose resources it lacks.
#[test]
fn t1_t5_credit_and_resources_are_not_mixed_up() {
    assert!(searched("credit-small").seen.assigned > 0);
    let seen = searched("lacking-small").seen;
    assert!(seen.assigned > 0 && seen.held > 0);
}

#[test]
fn t1_t2_t5_t7_crossing_searches_lose_nothing() {
    let instance = named("crossing-small").expect("an instance").instance;
    assert_eq!(instance.order(), Order::Held);
    let seen = searched("crossing-small").seen;
    assert!(seen.assigned > 0 && seen.refused > 0 && seen.no_ops > 0 && seen.held > 0);
    assert_eq!(searched("crossing-wide").seen, seen, "however wide an entry is");
}

/// A request finds the first of four levels that has a task, and a search continues at the next.
#[test]
fn t4_crossing_searches_lose_nothing_of_four_levels() {
    let seen = searched("four-levels").seen;
    assert!(seen.assigned > 0 && seen.no_ops > 0 && seen.held > 0);
}

/// The shortest way that the checker finds into an overrun queue.
#[test]
fn t1_an_overwritten_entry_is_found() {
    let safe = Safe::build(Config { levels: 2, size: 2, words: 1 }, &Target::TOFINO_1).expect("it fits");
    let jobs = vec![vec![(1, 0), (1, 0)], vec![(1, 0)], vec![(2, 0)]];
    let instance = Instance { start: START, jobs, retries: 0, executors: vec![(0, 2)], ..Instance::default() };
    let verdict = run(Generous(safe), &instance, 1, &Watch::default());
    let [violation] = &verdict.violations[..] else { panic!("{verdict:?}") };
    assert_eq!((violation.broken.rule, violation.broken.what.as_str()), ("T1", "task 1 is lost"));
    assert_eq!(violation.steps, 3, "three tasks enter a queue of two\n{}", violation.transcript);
    assert!(violation.transcript.contains("client 1 submits 3"), "{}", violation.transcript);
}

/// Not kept: crossing searches change the order of tasks that neither could run.
#[test]
fn crossing_searches_change_the_order() {
    page_shows_way("printed/asic.md", "order-of-crossing");
}

/// Not kept if recirculation loses packets.
#[test]
fn a_lost_packet_loses_what_it_carries() {
    for name in ["lost-swap", "lost-place", "lost-rest", "lost-rest-again"] {
        page_shows_way("printed/asic.md", name);
    }
}

/// A stopped search ends, and does not claim to have seen all.
#[test]
fn a_search_ends_when_it_is_told_to() {
    let named = named("ordered-small").expect("an instance");
    let watch = Watch::stopped_by(Arc::new(AtomicBool::new(true)));
    let verdict = named.search(2, &watch).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!((verdict.states, verdict.exhaustive, watch.states()), (1, false, 0));
    assert_eq!(named.judge(&verdict), Judgement::Open);
}
