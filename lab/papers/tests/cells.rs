//! Properties of a cell of any scheme.

use midflight_papers::cell::{
    Cell, CellError, Cluster, Group, Linux, Load, Pipelined, Polling, Program, Sampling, Scheme, Step, Work, run,
};

fn asic(program: Program) -> Scheme {
    Scheme::MidflightAsic(Pipelined { program, interval_us: 50 })
}

fn schemes() -> Vec<Scheme> {
    let two = Sampling { schedulers: 2, on_clients: true, ..Sampling::default() };
    vec![
        Scheme::Midflight,
        Scheme::MidflightServer,
        Scheme::MidflightKernel(Linux::default()),
        Scheme::MidflightKernel(Linux { shared_cores: 2, ..Linux::default() }),
        asic(Program::Safe),
        asic(Program::Published),
        Scheme::Bolt(Polling::default()),
        Scheme::BoltServer(Polling::default()),
        Scheme::SparrowJava(two.clone()),
        Scheme::SparrowCpp(two),
        Scheme::Spark,
    ]
}

fn cell(scheme: Scheme, load: Load) -> Cell {
    let (warmup_ms, duration_ms, drain_ms) = (50, 400, 20_000);
    Cell { scheme, cluster: Cluster::uniform(5, 4), load, seed: 9, warmup_ms, duration_ms, drain_ms }
}

fn trace() -> Load {
    Load::Trace { file: None, sample: 1.2, median_ms: 2.0, load: 0.6, priorities: true, clients: 2, work: Work::Sleep }
}

#[test]
fn every_task_starts_and_ends_and_two_runs_are_the_same() {
    for scheme in schemes() {
        let cell = cell(scheme, trace());
        let (one, two) = (run(&cell).unwrap(), run(&cell).unwrap());
        assert!(one.submitted > 200, "{:?}: {} tasks", cell.scheme, one.submitted);
        assert_eq!((one.started, one.ended), (one.submitted, one.submitted), "{:?}", cell.scheme);
        assert_eq!(one.deterministic(), two.deterministic(), "{:?}", cell.scheme);
        assert_eq!(one.groups.len(), 1);
    }
}

/// Executors of 64 slots register with two packets, which may be reordered, while tasks arrive.
#[test]
fn t1_a_calm_cluster_runs_every_task_once_from_its_first_moment() {
    let cluster = Cluster { shards: 8, ..Cluster::uniform(32, 64) };
    let load = Load::Mix { short_us: 500.0, long_us: 500.0, short_share: 1.0, load: 0.8, clients: 16 };
    for scheme in [Scheme::Midflight, Scheme::MidflightServer] {
        let (cluster, load) = (cluster.clone(), load.clone());
        let cell = Cell { scheme, cluster, load, seed: 1, warmup_ms: 0, duration_ms: 3, drain_ms: 200 };
        let result = run(&cell).unwrap();
        assert_eq!((result.started, result.ended), (result.submitted, result.submitted), "{:?}", cell.scheme);
        assert_eq!(result.counters["switch.requeued"], 0, "{:?}", cell.scheme);
        assert!(result.counters["switch.packets"] > result.submitted / 32, "{:?}", result.counters);
    }
}

#[test]
fn all_schemes_see_the_same_arrivals() {
    for load in [trace(), Load::Sw1 { clients: 2, utilisation: 0.7, work: Work::Compute }] {
        let submitted: Vec<u64> =
            schemes().into_iter().map(|scheme| run(&cell(scheme, load.clone())).unwrap().submitted).collect();
        assert!(submitted.iter().all(|&tasks| tasks == submitted[0]), "{submitted:?}");
    }
}

#[test]
fn steps_are_parts_of_the_delay() {
    let load = Load::Sw1 { clients: 2, utilisation: 0.5, work: Work::Compute };
    for scheme in schemes() {
        let cell = cell(scheme, load.clone());
        let result = run(&cell).unwrap();
        for (step, percentiles) in &result.steps {
            assert!(percentiles.at(0.95) <= result.delay.at(1.0), "{:?}: {step:?}", cell.scheme);
        }
        let sparrow = matches!(cell.scheme, Scheme::SparrowJava(_) | Scheme::SparrowCpp(_));
        assert_eq!(result.steps.contains_key(&Step::Reservation), sparrow, "{:?}", cell.scheme);
    }
}

#[test]
fn t5_resources_are_kept_by_those_who_have_them() {
    let group = |resources| Group { nodes: 3, executors: 20, resources };
    let cluster = Cluster { groups: vec![group(1), group(3), group(7)], shards: 1 };
    for scheme in [Scheme::Midflight, Scheme::MidflightServer, Scheme::Bolt(Polling::default())] {
        let cell = Cell { cluster: cluster.clone(), duration_ms: 3_000, ..cell(scheme, Load::Sw2) };
        let result = run(&cell).unwrap();
        assert_eq!(result.started, result.submitted);
        // Buckets of half a second: in the last of the three only the last group may work.
        let in_the_last = |group: usize| result.groups[group].ended_per_node_s.get(5).copied().unwrap_or(0.0);
        assert_eq!((in_the_last(0), in_the_last(1)), (0.0, 0.0), "{:?}", cell.scheme);
        assert!(in_the_last(2) > 0.0);
    }
}

#[test]
fn the_kernel_s_one_core_bounds_what_many_executors_get() {
    let load = || Load::Noop { clients: 8, backlog: 32 };
    let rate = |scheme, per_node| {
        let cell =
            Cell { cluster: Cluster::uniform(10, per_node), warmup_ms: 5, duration_ms: 15, ..cell(scheme, load()) };
        run(&cell).unwrap().started_per_s
    };
    let kernel = |per_node| rate(Scheme::MidflightKernel(Linux::default()), per_node);
    let (few, many) = (kernel(1), kernel(48));
    assert!(many < 24.0 * few, "it stays linear: {few} and {many} a second");
    assert!(rate(Scheme::Midflight, 48) > 2.0 * many, "a pipeline is not faster than {many} a second");
}

#[test]
fn hosts_that_share_few_cores_wait_for_each_other() {
    let load = || Load::Sw1 { clients: 2, utilisation: 0.5, work: Work::Sleep };
    let median = |shared_cores, wake_ns| {
        let scheme = Scheme::MidflightKernel(Linux { shared_cores, wake_ns, measured: None });
        run(&Cell { cluster: Cluster::uniform(10, 6), ..cell(scheme, load()) }).unwrap().delay.median_ms()
    };
    assert!(median(2, None) > 1.5 * median(0, None), "{} and {} ms", median(2, None), median(0, None));
    assert!(median(2, Some(30_000)) > 1.5 * median(2, Some(0)), "being woken up takes time");
    assert!((median(1_000, None) / median(0, None) - 1.0).abs() < 0.2, "{} ms", median(1_000, None));
}

#[test]
fn shards_take_an_even_part() {
    let cluster = Cluster { shards: 4, ..Cluster::uniform(8, 4) };
    let load = Load::Mix { short_us: 500.0, long_us: 500.0, short_share: 1.0, load: 0.5, clients: 2 };
    let result = run(&Cell { cluster, ..cell(Scheme::Midflight, load) }).unwrap();
    assert!(result.submitted > 5_000);
    assert_eq!(result.ended, result.submitted);
    assert!(result.delay.median_ms() < 0.1, "{} ms", result.delay.median_ms());
}

#[test]
fn a_program_alone_counts_its_passes() {
    for program in [Program::Safe, Program::Published] {
        let load = Load::Queue { length: 64, unfit: 0.5, retrievals: 200, emptied: true };
        let result = run(&cell(Scheme::AsicPasses { program }, load)).unwrap();
        let each = |part: &str| {
            result.counters[&format!("{part}.passes")] as f64 / result.counters[&format!("{part}.tasks")] as f64
        };
        assert_eq!(each("submit"), 1.0, "{program:?}");
        assert!((1.7..2.3).contains(&each("mixed")), "{program:?}: {}", each("mixed"));
        assert!((10.0..26.0).contains(&each("emptied")), "{program:?}: {}", each("emptied"));
        assert!((64..=68).contains(&result.counters["vain.passes"]), "{program:?}: {result:?}");
        let level = |level: u8| result.counters[&format!("level{level}.passes")];
        let levels = if program == Program::Safe { [1; 4] } else { [1, 2, 3, 4] };
        assert_eq!([1, 2, 3, 4].map(level), levels);
    }
    let unfit = run(&cell(Scheme::Midflight, Load::Queue { length: 1, unfit: 0.0, retrievals: 1, emptied: false }));
    assert!(matches!(unfit, Err(CellError::Bad(_))));
}
