//! Passes per second: `cargo bench -p midflight-rmt`.
//!
//! Measures the published queue at Bolt's size, and a program with a bit of everything in every stage of both pipelines. Times are the
//! thread's own CPU times, so that a busy machine measures much the same.

use midflight_rmt::tasks::published::{Config, Published, Task};
use midflight_rmt::{
    Action, Alu, Builder, Cell, Destination, Field, Machine, Match, Packet, Pipeline, Refusal, Target, Test, To, Width,
    low_bits,
};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

const PASSES: u32 = 2_000_000;

fn main() -> Result<(), Refusal> {
    queue()?;
    full()
}

/// CPU seconds of this thread.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn print(name: &str, start: f64, passes: u32) {
    let each = (seconds() - start) / f64::from(passes);
    println!("{name:<48} {:>6.0} ns a pass {:>6.2} M passes/s", each * 1e9, 1e-6 / each);
}

/// A task in, a task out, in turn; every other pass of a retrieve goes to the next level.
fn queue() -> Result<(), Refusal> {
    let published = Published::build(Config::BOLT, &Target::TOFINO_1)?;
    let mut machine = published.machine();
    let task = Task { tid: 1, level: 2, resources: 0, words: vec![0; 5] };
    let (submit, retrieve) = (published.submit(1, (2, 3), &[task]), published.retrieve(4, 0));
    let (mut passes, start) = (0, seconds());
    while passes < PASSES {
        passes += run(&mut machine, submit.clone()) + run(&mut machine, retrieve.clone());
    }
    print("published queue: a task in, a task out", start, passes);
    Ok(())
}

/// Runs a packet and its copies until they have left; returns the number of passes.
fn run(machine: &mut Machine, packet: Packet) -> u32 {
    let outputs = black_box(machine.pass(packet));
    let again = matches!(outputs.packet.to, To::Recirculated | To::Copied);
    let copies: u32 = outputs.copies.into_iter().flatten().map(|copy| run(machine, copy)).sum();
    1 + copies + if again { run(machine, outputs.packet.packet) } else { 0 }
}

fn full() -> Result<(), Refusal> {
    let mut b = Builder::new("full");
    let kind = b.header("kind", Width::W8);
    let words: Vec<Field> = (0..8).map(|n| b.header(format!("w{n}"), Width::W32)).collect();
    for (p, pipeline) in [Pipeline::Ingress, Pipeline::Egress].into_iter().enumerate() {
        for stage in 0..12 {
            let of = |n: usize| words[(stage + n) % 8];
            let array = b.register(pipeline, stage, format!("r{p}{stage}"), Cell::W32, 1024);
            let access = array.at(low_bits(of(0), 10)).test(Test::NotEqual, of(1)).then(Alu::add(1)).give_old(of(2));
            b.table(pipeline, stage, "touch").when(kind.is(1)).run(&Action::new("touch").access(access));
            let (add, or) = (Action::new("add").add(of(3), of(3), of(4)), Action::new("or").or(of(3), of(5), of(6)));
            let key = b.table(pipeline, stage, "key").ternary(of(7));
            key.entry([Match::Masked { mask: 3, value: 1 }], &add, &[]).run(&or);
            b.table(pipeline, stage, "not").when(kind.is(2)).run(&Action::new("not").set(of(2), 0));
        }
    }
    b.table(Pipeline::Ingress, 0, "send").run(&Action::new("send").forward(Destination::Recirculate));
    let mut machine = Machine::load(&b.build(&Target::TOFINO_1)?);
    let mut packet = machine.packet().with(kind, 1);
    let start = seconds();
    for _ in 0..PASSES {
        packet = black_box(machine.pass(packet)).packet.packet;
    }
    print("24 stages, 73 tables, 24 registers touched", start, PASSES);
    Ok(())
}
