//! The hazards of the published queue: a shortest way into each, found anew and held against `docs/internals/asic-hazards.md`.
//! `UPDATE_DOCS=1 cargo test -p midflight-rmt --test hazards` writes the ways anew; then read the difference.

mod common;

use common::page_shows;
use midflight_rmt::Target;
use midflight_rmt::tasks::check::{Instance, Order, Verdict, run};
use midflight_rmt::tasks::published::{Config, Empty, Published};

const A: u8 = 1;
const B: u8 = 2;

fn published(size: u32) -> Published {
    let config = Config { levels: 1, size, words: 1, empty: Empty::NoOp };
    Published::build(config, &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn search(size: u32, instance: &Instance) -> Verdict {
    let verdict = run(published(size), instance, 1);
    println!("{} states, {} steps, depth {}, {:?}", verdict.states, verdict.steps, verdict.depth, verdict.seen);
    verdict
}

/// The way that the search finds is the one on the page.
fn shows(name: &str, size: u32, instance: &Instance) {
    let verdict = search(size, instance);
    let [violation] = &verdict.violations[..] else { panic!("no way: {verdict:?}") };
    let shown = format!("```text\n{}: {}\n{}```\n", violation.broken.rule, violation.broken.what, violation.transcript);
    println!("{shown}");
    page_shows("asic-hazards.md", &format!("way: {name}"), &shown);
}

/// Jobs of plain tasks, this many each.
fn plain(jobs: &[usize]) -> Vec<Vec<(u8, u8)>> {
    jobs.iter().map(|&tasks| vec![(1, 0); tasks]).collect()
}

/// What holds this rule, and no other.
fn only(rule: &'static str) -> Instance {
    Instance { rules: Some(vec![rule]), ..Instance::default() }
}

/// What holds none.
fn none() -> Instance {
    Instance { rules: Some(Vec::new()), ..Instance::default() }
}

#[test]
fn hazard_1_a_task_stored_before_the_repair_is_overwritten() {
    let instance = Instance { jobs: plain(&[3, 1, 1, 1]), executors: vec![(0, 2)], informed: true, ..only("T1") };
    shows("1", 2, &instance);
}

/// Full queues, and repairs in flight: who is not taken in hears of it. (That silence would be found: hazard 7, the rest of a job.)
#[test]
fn hazard_2_does_not_exist_every_full_is_reported() {
    let instance = Instance { jobs: plain(&[1, 2, 1, 1]), executors: vec![(0, 2)], ..only("T7") };
    let verdict = search(2, &instance);
    assert!(verdict.exhaustive && verdict.violations.is_empty(), "{verdict:?}");
    assert!(verdict.seen.refused > 0);
}

#[test]
fn hazard_3_a_hole_is_taken_for_the_end() {
    let instance = Instance { jobs: plain(&[3, 1]), executors: vec![(0, 3)], informed: true, ..only("T4") };
    shows("3", 2, &instance);
}

/// Fulls, overruns, repairs and searches, with pointers that wrap and with such that do not: the same states. No rule ends the
/// search, so that it sees them all.
#[test]
fn hazard_4_does_not_exist_where_the_comparison_is_serial() {
    let jobs = vec![vec![(1, A)], vec![(1, A)], vec![(1, B)]];
    let from = |start| Instance { start, jobs: jobs.clone(), executors: vec![(A, 1), (B, 1)], ..none() };
    let verdicts = [0, u32::MAX - 2, u32::MAX - 1, u32::MAX].map(|start| search(2, &from(start)));
    let seen = verdicts[0].seen;
    assert!(seen.assigned > 0 && seen.no_ops > 0 && seen.refused > 0 && seen.held > 0);
    verdicts.iter().for_each(|verdict| assert_eq!(verdict, &verdicts[0]));
    assert!(verdicts[0].exhaustive);
}

/// What its errors come from: where no SUBMIT meets a full queue and nobody polls an empty one, searches lose nothing and end.
#[test]
fn hazard_5_does_not_exist_while_no_pointer_errs() {
    let rules = Some(vec!["T1", "T2", "T5", "T7", "progress"]);
    let jobs = vec![vec![(1, A), (1, B), (1, A)]];
    let executors = vec![(B, 2), (A, 2), (A | B, 1)];
    let verdict = search(4, &Instance { jobs, executors, informed: true, rules, ..Instance::default() });
    assert!(verdict.exhaustive && verdict.violations.is_empty(), "{verdict:?}");
    assert!(verdict.seen.held > 0 && verdict.seen.refused == 0);
}

#[test]
fn hazard_5_a_searchs_task_is_lost() {
    let jobs = vec![vec![(1, A)]; 4];
    let instance = Instance { jobs, executors: vec![(B, 1), (A, 1)], informed: true, ..only("T1") };
    shows("5 lost", 2, &instance);
}

#[test]
fn hazard_5_a_searchs_task_meets_a_full_queue() {
    let jobs = vec![vec![(1, A), (1, A)], vec![(1, A)]];
    let instance = Instance { jobs, executors: vec![(B, 1), (A, 1)], informed: true, ..only("T7") };
    shows("5 full", 2, &instance);
}

/// Searches change the order even where no pointer errs.
#[test]
fn hazard_5_one_search_changes_the_order() {
    let jobs = vec![vec![(1, A), (1, A)]];
    let instance =
        Instance { jobs, executors: vec![(B, 1), (A, 1)], order: Some(Order::Kept), informed: true, ..only("T3") };
    shows("5 order", 4, &instance);
}

#[test]
fn hazard_6_order_breaks_before_the_repair() {
    let instance = Instance { jobs: plain(&[1, 1]), executors: vec![(0, 2)], order: Some(Order::Held), ..only("T3") };
    shows("6", 2, &instance);
}

#[test]
fn hazard_7_a_lost_repair_leaves_its_flag_up() {
    let instance = Instance { jobs: plain(&[1]), executors: vec![(0, 1)], drops: 1, ..only("registers") };
    shows("7 repair", 2, &instance);
}

/// What the head has passed by is found when polls have gone round all entries.
#[test]
fn hazard_7_a_lost_repair_delays_but_the_work_can_end() {
    let instance = Instance { jobs: plain(&[1, 1]), executors: vec![(0, 2)], drops: 1, ..only("progress") };
    let verdict = search(4, &instance);
    assert!(verdict.exhaustive && verdict.violations.is_empty(), "{verdict:?}");
    assert!(verdict.seen.no_ops > 0);
}

#[test]
fn hazard_7_a_lost_swap_loses_its_task() {
    let jobs = vec![vec![(1, A)]];
    let instance = Instance { jobs, executors: vec![(B, 1)], drops: 1, informed: true, ..only("T1") };
    shows("7 swap", 2, &instance);
}

#[test]
fn hazard_7_a_lost_rest_of_a_job_is_silence() {
    let instance = Instance { jobs: plain(&[2]), drops: 1, ..only("T7") };
    shows("7 submit", 2, &instance);
}

#[test]
fn hazard_7_a_job_sent_again_doubles_its_head() {
    let instance = Instance { jobs: plain(&[2]), drops: 1, timeouts: true, ..only("T2") };
    shows("7 again", 2, &instance);
}

#[test]
fn hazard_8_an_entry_is_read_before_it_is_written() {
    let instance = Instance { jobs: plain(&[1]), executors: vec![(0, 1)], halves: true, ..only("T1") };
    shows("8", 2, &instance);
}

#[test]
fn hazard_9_room_is_measured_from_a_pointer_that_erred() {
    let instance = Instance { jobs: plain(&[1, 1, 1]), executors: vec![(0, 1)], ..only("T1") };
    shows("9", 2, &instance);
}
