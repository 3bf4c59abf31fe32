//! The hazards of the published queue: a shortest way into each, found anew and held against `docs/internals/asic-hazards.md`.
//! `UPDATE_DOCS=1 cargo test -p midflight-rmt --test hazards` writes the ways anew; then read the difference.

mod common;
#[path = "common/ways.rs"]
mod ways;

use midflight_rmt::Target;
use midflight_rmt::tasks::check::{Instance, Verdict, Watch, run};
use midflight_rmt::tasks::published::{Config, Empty, Published};
use ways::{page_shows_way, searched};

/// The way that the search finds is the one on the page.
fn shows(name: &str) {
    page_shows_way("asic-hazards.md", name);
}

#[test]
fn hazard_1_a_task_stored_before_the_repair_is_overwritten() {
    shows("hazard-1");
}

/// Full queues, and repairs in flight: who is not taken in hears of it. (That silence would be found: hazard 7, the rest of a job.)
#[test]
fn hazard_2_does_not_exist_every_full_is_reported() {
    assert!(searched("hazard-2").seen.refused > 0);
}

#[test]
fn hazard_3_a_hole_is_taken_for_the_end() {
    shows("hazard-3");
}

/// Fulls, overruns, repairs and searches, with pointers that wrap and with such that do not: the same states. No rule ends the
/// search, so that it sees them all.
#[test]
fn hazard_4_does_not_exist_where_the_comparison_is_serial() {
    let (a, b) = (1, 2);
    let search = |start| -> Verdict {
        let (jobs, executors) = (vec![vec![(1, a)], vec![(1, a)], vec![(1, b)]], vec![(a, 1), (b, 1)]);
        let instance = Instance { start, jobs, executors, rules: Some(Vec::new()), ..Instance::default() };
        let config = Config { levels: 1, size: 2, words: 1, empty: Empty::NoOp };
        let published = Published::build(config, &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"));
        run(published, &instance, 1, &Watch::default())
    };
    let verdicts = [0, u32::MAX - 2, u32::MAX - 1, u32::MAX].map(search);
    let seen = verdicts[0].seen;
    assert!(seen.assigned > 0 && seen.no_ops > 0 && seen.refused > 0 && seen.held > 0);
    verdicts.iter().for_each(|verdict| assert_eq!(verdict, &verdicts[0]));
    assert!(verdicts[0].exhaustive);
}

/// What its errors come from: where no SUBMIT meets a full queue and nobody polls an empty one, searches lose nothing and end.
#[test]
fn hazard_5_does_not_exist_while_no_pointer_errs() {
    let seen = searched("hazard-5").seen;
    assert!(seen.held > 0 && seen.refused == 0);
}

#[test]
fn hazard_5_a_searchs_task_is_lost() {
    shows("hazard-5-lost");
}

#[test]
fn hazard_5_a_searchs_task_meets_a_full_queue() {
    shows("hazard-5-full");
}

/// Searches change the order even where no pointer errs.
#[test]
fn hazard_5_one_search_changes_the_order() {
    shows("hazard-5-order");
}

#[test]
fn hazard_6_order_breaks_before_the_repair() {
    shows("hazard-6");
}

#[test]
fn hazard_7_a_lost_repair_leaves_its_flag_up() {
    shows("hazard-7-repair");
}

/// What the head has passed by is found when polls have gone round all entries.
#[test]
fn hazard_7_a_lost_repair_delays_but_the_work_can_end() {
    assert!(searched("hazard-7-delay").seen.no_ops > 0);
}

#[test]
fn hazard_7_a_lost_swap_loses_its_task() {
    shows("hazard-7-swap");
}

#[test]
fn hazard_7_a_lost_rest_of_a_job_is_silence() {
    shows("hazard-7-submit");
}

#[test]
fn hazard_7_a_job_sent_again_doubles_its_head() {
    shows("hazard-7-again");
}

#[test]
fn hazard_8_an_entry_is_read_before_it_is_written() {
    shows("hazard-8");
}

#[test]
fn hazard_9_room_is_measured_from_a_pointer_that_erred() {
    shows("hazard-9");
}
