use super::*;
use crate::cell::{Cluster, Group, Scheme, Work};

fn cell(scheme: Scheme, cluster: Cluster, load: Load, duration_ms: u64) -> Cell {
    Cell { scheme, cluster, load, seed: 7, warmup_ms: duration_ms / 10, duration_ms, drain_ms: 1_000 }
}

fn played(cell: &Cell, elide: bool) -> (CellResult, Starts) {
    let mut bolt = Bolt::new(cell, &Polling { elide, ..Polling::default() }, false).unwrap();
    bolt.starts = Some(Starts::new());
    while bolt.step() {}
    let (mut result, starts) = bolt.finish();
    result.events = 0;
    for count in ["polls", "noops"] {
        result.counters.remove(count);
    }
    (result, starts)
}

fn same(cell: &Cell) {
    let (all, elided) = (played(cell, false), played(cell, true));
    assert!(all.0.started > 200, "{} tasks are too few to tell", all.0.started);
    assert_eq!(all.1, elided.1);
    assert_eq!(all.0, elided.0);
}

fn bolt() -> Scheme {
    Scheme::Bolt(Polling::default())
}

#[test]
fn elided_polls_change_no_tasks_times() {
    for utilisation in [0.3, 0.95, 1.1] {
        let load = Load::Sw1 { clients: 2, utilisation, work: Work::Compute };
        same(&cell(bolt(), Cluster::uniform(4, 6), load, 400));
    }
    let load = Load::Trace {
        file: None,
        sample: 1.2,
        median_ms: 2.0,
        load: 0.7,
        priorities: true,
        clients: 2,
        work: Work::Sleep,
    };
    same(&cell(bolt(), Cluster::uniform(4, 6), load, 800));
    let load = Load::Mix { short_us: 10.0, long_us: 100.0, short_share: 0.5, load: 0.5, clients: 3 };
    same(&cell(bolt(), Cluster::uniform(2, 40), load, 20));
}

#[test]
fn elided_polls_change_no_tasks_times_where_some_search_in_vain() {
    let group = |nodes, resources| Group { nodes, executors: 6, resources };
    let cluster = Cluster { groups: vec![group(5, 1), group(5, 3), group(9, 7)], shards: 1 };
    same(&cell(bolt(), cluster, Load::Sw2, 600));
}

#[test]
fn an_idle_cluster_costs_the_way_in_a_wait_and_the_way_out() {
    let load = Load::Mix { short_us: 100.0, long_us: 100.0, short_share: 1.0, load: 0.02, clients: 1 };
    let result = crate::cell::run(&cell(bolt(), Cluster::uniform(1, 50), load, 500)).unwrap();
    let Times { up, down, .. } = Times::new(&Polling::default());
    let ways = (up + PASS_NS + PASS_NS + down + 2 * RECEIVE_JITTER_NS) as f64 / 1e6;
    assert!((result.delay.mean_ms / (ways + 0.0015) - 1.0).abs() < 0.1, "{} for {ways}", result.delay.mean_ms);
    let request = result.steps[&crate::cell::Step::GetTask].mean_ms;
    assert!((request / (31.3e-3) - 1.0).abs() < 0.05, "{request}");
}

#[test]
fn the_switch_is_linear_and_a_server_is_not() {
    let noop = |scheme, executors: u32, duration_ms| {
        let cluster = Cluster::uniform(12, executors / 12);
        let load = Load::Noop { clients: 8, backlog: 128 };
        let cell = Cell { warmup_ms: duration_ms / 3, ..cell(scheme, cluster, load, duration_ms) };
        crate::cell::run(&cell).unwrap().started_per_s / 1e6
    };
    let server = || Scheme::BoltServer(Polling::default());
    let (some, all) = (noop(bolt(), 144, 20), noop(bolt(), 720, 20));
    assert!((all / 23.0 - 1.0).abs() < 0.03, "{all} M/s of 720");
    assert!((all / some / 5.0 - 1.0).abs() < 0.03, "{some} M/s of 144, {all} M/s of 720");
    for executors in [144u32, 240, 720] {
        // Longer than clients take to resubmit what is lost among polls.
        let rate = noop(server(), executors, 900);
        assert!((rate / 0.5 - 1.0).abs() < 0.1, "{rate} M/s of {executors}");
    }
}
