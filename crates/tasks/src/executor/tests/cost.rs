//! Cost of a task: `cargo test --release -p midflight-tasks executor::tests::cost -- --ignored --nocapture`.

use super::*;
use std::time::{Duration, Instant};

/// 64 slots get tasks by five ASSIGNs, finish together, and are acknowledged by two COMPLETE_ACKs. Only the executor's calls are
/// timed.
#[test]
#[ignore = "measures"]
fn a_task_costs_less_than_a_microsecond() {
    const ROUNDS: u32 = 20_000;
    let mut world = World::registered(64);
    let (mut spent, mut buffer) = (Duration::ZERO, Vec::new());
    let mut packets = 0;
    for round in 1..=ROUNDS {
        world.now += 100_000;
        let all: Vec<_> = (0..64).map(|slot| at_round(assignment(slot, 7, round, slot as u8), round)).collect();
        let assigns: Vec<_> = all.chunks(WAITS_MAX).map(|tasks| assign(EPOCH, tasks)).collect();
        let acks: Vec<_> = all.chunks(32).map(ack_all).collect();
        let start = Instant::now();
        for datagram in &assigns {
            world.executor.handle(world.now, switch(1), datagram);
            while let Some(event) = world.executor.poll_event() {
                let Event::Run(run) = event else { continue };
                let result = Output::Inline(Vec::new());
                let end = End { status: Status::Ok, result, started: world.now, ended: world.now };
                world.executor.finish(world.now, run.key, end);
            }
        }
        while world.executor.poll_transmit(world.now, &mut buffer).is_some() {
            packets += 1;
        }
        for datagram in &acks {
            world.executor.handle(world.now, client(1), datagram);
        }
        assert!(world.executor.poll_timeout() > Some(world.now));
        spent += start.elapsed();
    }
    assert_eq!(world.counters().delivered, u64::from(ROUNDS) * 64);
    let tasks = f64::from(ROUNDS) * 64.0;
    let ns = spent.as_nanos() as f64 / tasks;
    println!("{ns:.0} ns a task, {:.4} packets sent a task", f64::from(packets) / tasks);
    assert!(ns < 1_000.0);
}

/// All slots poll a switch without tasks every 50 us. Only the executor's calls are timed.
#[test]
#[ignore = "measures"]
fn a_poll_costs_the_same_however_many_slots_poll() {
    const POLLS: u32 = 1 << 20;
    for slots in [16, 256, 4096] {
        let mut config = ExecutorConfig::new(42, 1, vec![switch(1)], slots, 0);
        config.poll_repeat_min = 100 * MS; // nothing is lost here
        let mut world = World::with(config);
        world.poll_us = 50;
        world.grant(EPOCH, 7);
        let (mut spent, mut buffer) = (Duration::ZERO, Vec::new());
        let mut waits = world.waits();
        for _ in 0..POLLS / slots {
            let answers: Vec<_> = waits.drain(..).map(|wait| no_op(EPOCH, &[wait])).collect();
            let start = Instant::now();
            for datagram in &answers {
                world.executor.handle(world.now, switch(1), datagram);
            }
            world.now = world.executor.poll_timeout().unwrap();
            world.executor.handle_timeout(world.now);
            spent += start.elapsed();
            for number in 0..slots {
                let start = Instant::now();
                assert!(world.executor.poll_transmit(world.now, &mut buffer).is_some());
                spent += start.elapsed();
                waits.push((100 + number, 7, 1));
            }
            assert!(world.executor.poll_transmit(world.now, &mut buffer).is_none());
        }
        assert_eq!(world.counters().polls, u64::from(POLLS));
        println!("{slots} slots: {:.0} ns a poll", spent.as_nanos() as f64 / f64::from(POLLS));
    }
}

fn at_round(mut assignment: Assignment, round: u32) -> Assignment {
    assignment.submission = round.into();
    assignment
}

fn ack_all(tasks: &[Assignment]) -> Vec<u8> {
    let done = |&Assignment { token, submission, index, task, .. }: &Assignment| {
        let (attempt, state) = (task.attempt, AckState::Done as u8);
        let one = Completed { proof: 0.into(), submission, index, attempt, state, reserved: 0 };
        proven(Token::new(token.get()), one)
    };
    packet(&CompleteAck::new(EPOCH, 0), &tasks.iter().map(done).collect::<Vec<_>>())
}
