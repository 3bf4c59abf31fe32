//! Passes per task: a program's cost to the switch.

use super::{PassOutcome, Subject, Task};
use crate::{Machine, Packet};
use std::collections::VecDeque;

const TASKS: u32 = 10_000;

/// Passes per task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passes {
    /// Of its SUBMIT and all passes that it causes.
    pub submit: f64,
    /// Of its RETRIEVE, likewise.
    pub retrieve: f64,
}

/// Sends ten thousand unconstrained tasks through one level, one packet after the other. The queue length varies from 0 to 61, so it must
/// have 64 entries.
pub fn passes<S: Subject>(subject: &S) -> Passes {
    let mut machine = subject.machine(0);
    let (mut submit, mut retrieve, mut queued, mut assigned) = (0, 0, 0, 0);
    for number in 0..TASKS {
        let task = Task { tid: number + 1, level: 1, resources: 0 };
        submit += drain(subject, &mut machine, subject.submit(0, &[task])).0;
        queued += 1;
        while queued > number % 61 {
            let (passes, tasks) = drain(subject, &mut machine, subject.retrieve(0, 0));
            (retrieve, assigned, queued) = (retrieve + passes, assigned + tasks, queued - 1);
        }
    }
    let of = |passes: u32, tasks: u32| f64::from(passes) / f64::from(tasks);
    Passes { submit: of(submit, TASKS), retrieve: of(retrieve, assigned) }
}

/// Runs until nothing recirculates. Returns passes, and tasks assigned whole.
fn drain<S: Subject>(subject: &S, machine: &mut Machine, packet: Packet) -> (u32, u32) {
    let (mut passes, mut assigned, mut inside) = (0, 0, VecDeque::from([packet]));
    while let Some(packet) = inside.pop_front() {
        passes += 1;
        for sent in machine.pass(packet) {
            match subject.told(&sent) {
                PassOutcome::Round => inside.push_back(sent.packet),
                PassOutcome::Assigned { whole: true, .. } => assigned += 1,
                _ => {}
            }
        }
    }
    (passes, assigned)
}
