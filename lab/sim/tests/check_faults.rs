//! Single faults of the campaign, each in its own trial: that the fault has its effect, and what the rules then
//! promise.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_sim::check::{Net, Trial as _, run_traced};
use midflight_sim::tasks::check::{
    ClientSpec, ExecutorSpec, Fault, Job, Party, SwitchSpec, TaskSpec, TasksSubject, Trial, What,
};

/// A switch, an executor and two clients; the second one has a job of `tasks` at 1 s.
fn trial(tasks: usize, heal_ms: u64, faults: &[(u64, u64, What)]) -> Trial {
    let switch = SwitchSpec {
        queue: 100,
        slots: 64,
        clients: 64,
        places: 8,
        levels: 1,
        lease_ms: 300,
        slot_idle_ms: 1_200,
        client_idle_ms: 3_000,
        cookie_ms: 60,
    };
    let task = TaskSpec {
        run_us: 20_000,
        priority: 1,
        resources: 0,
        timeout_ms: 0,
        attempts: 1,
        deaf: false,
        place: 0,
        patience_ms: 0,
    };
    let client = ClientSpec { window: 32 };
    Trial {
        seed: 1,
        heal_ms,
        network: Net::KIND,
        switches: vec![switch],
        executors: vec![ExecutorSpec {
            slots: 4,
            resources: 0,
            ahead: 0,
            waiting: 0,
            ahead_span_us: 0,
            bundles: [0; 8],
            places: [0; 2],
        }],
        clients: vec![client, client],
        jobs: vec![Job { at_us: 1_000_000, client: 1, tasks: vec![task; tasks] }],
        cancels: Vec::new(),
        faults: faults
            .iter()
            .map(|(at_ms, for_ms, what)| Fault { at_ms: *at_ms, for_ms: *for_ms, what: what.clone() })
            .collect(),
    }
}

fn runs_well(trial: &Trial) -> Vec<String> {
    trial.validate().unwrap();
    let (outcome, lines) = run_traced::<TasksSubject>(trial);
    assert_eq!(outcome.violation, None);
    lines
}

fn times(lines: &[String], what: &str) -> Vec<f64> {
    let lines = lines.iter().filter(|line| line.contains(what));
    lines.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

#[test]
fn t14_while_one_source_floods_the_others_are_served() {
    let flood = What::Flood { sources: 1, packets: 3_000 };
    let lines = runs_well(&trial(40, 15_000, &[(100, 14_900, flood)]));
    let ends = times(&lines, "client 1 reports the end");
    // The queue has room for eleven, and a client without room waits for up to a second.
    assert!(ends.len() == 40 && ends[39] < 5_000.0, "{} of 40, the last at {:?} ms", ends.len(), ends.last());
    assert!(times(&lines, "reason 5").len() > 100, "the flood meets the end of its share");
}

#[test]
fn t14_what_the_dead_have_queued_keeps_nobody_out_for_longer_than_client_idle() {
    let mut trial = trial(50, 1_000, &[(500, 0, What::Death(0))]);
    let nobodys = TaskSpec { resources: 1, ..trial.jobs[0].tasks[0] };
    trial.jobs.insert(0, Job { at_us: 100_000, client: 0, tasks: vec![nobodys; 256] });
    // The second client keeps the ninth that the first may not have, but needs more than that at once.
    trial.jobs[1].tasks.iter_mut().for_each(|task| task.run_us = 1_000_000);
    let lines = runs_well(&trial);
    let ends = times(&lines, "client 1 reports the end");
    assert_eq!(ends.len(), 50);
    let took_all = times(&lines, "SUBMIT_ACK").into_iter().last().unwrap();
    assert!((3_000.0..6_000.0).contains(&took_all), "all are queued at {took_all} ms");
}

#[test]
fn t16_an_address_that_goes_to_another_switch_and_returns_is_served_by_both() {
    let lines = runs_well(&trial(300, 4_000, &[(1_200, 800, What::Takeover(0)), (2_500, 300, What::Takeover(0))]));
    let served = |switch: &str, from: f64, to: f64| {
        let times = times(&lines, &format!("{switch} > executor 0: ASSIGN"));
        times.iter().any(|at| (from..to).contains(at))
    };
    assert!(served("switch 0", 1_000.0, 1_200.0) && served("switch 1", 1_200.0, 2_000.0));
    assert!(served("switch 0", 2_000.0, 2_500.0), "the same process, with the epoch that it had");
    assert!(!served("switch 1", 2_010.0, 2_490.0));
}

#[test]
fn t16_whoever_moves_is_served_where_he_is() {
    for (party, to) in [(Party::Executor(0), "executor 0"), (Party::Client(1), "client 1")] {
        let faults =
            [(1_200, 0, What::Move { party, returns: false }), (2_000, 300, What::Move { party, returns: true })];
        let lines = runs_well(&trial(300, 4_000, &faults));
        let moved = times(&lines, &format!("{to} is at 1"));
        assert_eq!(moved, [1_200.0, 2_000.0, 2_300.0]);
        assert_eq!(times(&lines, "client 1 reports the end").len(), 300);
    }
}

#[test]
fn t15_nothing_is_lost_on_the_narrowest_way() {
    let mtu = |party, bytes| What::Mtu { party, bytes };
    let faults = [(900, 2_000, mtu(None, 1_280)), (1_000, 1_000, mtu(Some(Party::Client(1)), 1_400))];
    assert_eq!(times(&runs_well(&trial(300, 4_000, &faults)), "client 1 reports the end").len(), 300);
}

#[test]
fn a_fault_that_makes_no_sense_is_refused() {
    let all = |what: What| {
        let mut trial = trial(1, 1_000, &[(0, 10, what)]);
        trial.executors[0].resources = u8::MAX;
        trial.validate().is_err()
    };
    assert!(all(What::Mtu { party: None, bytes: 1_279 }));
    assert!(all(What::Move { party: Party::Switch(0), returns: true }));
    assert!(all(What::Takeover(1)) && all(What::Death(2)));
    assert!(all(What::Flood { sources: 1, packets: 1 }), "its tasks would run");
    let mut unrunnable = trial(1, 1_000, &[]);
    unrunnable.jobs[0].tasks[0].resources = 1;
    assert!(unrunnable.validate().is_err(), "only who dies may leave it");
}
