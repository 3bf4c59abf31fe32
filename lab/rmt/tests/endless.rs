//! Cycles that never end although every executor and every packet is served: see `docs/internals/asic.md`.

mod common;

use common::page_shows;
use midflight_rmt::Watch;
use midflight_rmt::tasks::check::Endless;
use midflight_rmt::tasks::check::instances::{Lasting, lasting};

fn searched(lasting: &Lasting) -> Endless {
    lasting.search(&Watch::default()).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// Packets alone come to rest, in any order; a cycle needs requests at the wrong time, for ever.
#[test]
fn t12_packets_come_to_rest_in_any_order_and_requests_can_keep_a_search_going() {
    for lasting in lasting() {
        let found = searched(&lasting);
        let turn = |way: &Option<midflight_rmt::tasks::check::Way>| way.as_ref().map(|way| (way.steps, way.turn));
        println!("{}: {} states, passes {:?}", lasting.name, found.states, found.passes);
        println!("request {:?}, task {:?}", turn(&found.request), turn(&found.task));
        assert!(found.exhaustive && found.passes.is_some(), "{}: packets go round for ever", lasting.name);
        assert!(lasting.is_as_expected(&found), "{}: {found:?}", lasting.name);
    }
}

#[test]
fn the_page_shows_what_never_ends() {
    let lasting = lasting().into_iter().find(|lasting| lasting.name == "turns-in-order").expect("an instance");
    let found = searched(&lasting);
    let (request, task) = (found.request.expect("a request"), found.task.expect("a task"));
    page_shows("printed/asic.md", "turn: request", &format!("```text\n{request}```\n"));
    page_shows("printed/asic.md", "turn: task", &format!("```text\n{task}```\n"));
}
