//! The hazards of the published queue: searches a shortest way into each and compares it with `docs/internals/printed/asic-hazards.md`.
//! `UPDATE_DOCS=1 cargo test -p midflight-rmt --test hazards` writes the ways; then read the difference.

mod common;
#[path = "common/ways.rs"]
mod ways;

use midflight_rmt::tasks::check::instances::all;
use midflight_rmt::tasks::check::{Instance, Verdict, run};
use midflight_rmt::tasks::published::{Config, Empty, Published};
use midflight_rmt::{Target, Watch};
use ways::{page_shows_way, searched};

/// Compares the way into each hazard with the page. Those of queues of four entries are not shown.
#[test]
fn the_page_shows_a_shortest_way_into_each_hazard() {
    let is_shown = |name: &str| name.starts_with("hazard") && !name.ends_with("-of-4");
    let shown: Vec<_> = all().into_iter().filter(|named| named.finds.is_some() && is_shown(named.name)).collect();
    assert_eq!(shown.len(), 12);
    shown.iter().for_each(|named| page_shows_way("printed/asic-hazards.md", named.name));
}

/// Full queues, and repairs in flight: every refused client is told. (The search would find silence: hazard 7, the rest of a job.)
#[test]
fn hazard_2_does_not_exist_every_full_is_reported() {
    assert!(searched("hazard-2").seen.refused > 0);
}

/// Full queues, overruns, repairs and searches, with and without wrapping pointers: the same states. No rule ends the search, so it visits
/// them all.
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

/// The cause of its errors: while no SUBMIT meets a full queue and no executor polls an empty one, searches lose nothing and end.
#[test]
fn hazard_5_does_not_exist_while_no_pointer_errs() {
    let seen = searched("hazard-5").seen;
    assert!(seen.held > 0 && seen.refused == 0);
}

/// Tasks that the head has passed are found after polls have visited all entries.
#[test]
fn hazard_7_a_lost_repair_delays_but_the_work_can_end() {
    assert!(searched("hazard-7-delay").seen.no_ops > 0);
}
