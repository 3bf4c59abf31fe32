//! Passes a second: `cargo bench -p midflight-rmt`.
//!
//! One program that does a bit of all in each of twelve stages of both pipelines: more than the programs of this crate.

use midflight_rmt::{
    Action, Alu, Builder, Cell, Destination, Field, Machine, Match, Pipeline, Program, Refusal, Target, Test, Width,
    low_bits,
};
use std::hint::black_box;
use std::time::Instant;

const PASSES: u32 = 2_000_000;

fn full() -> Result<(Program, Field), Refusal> {
    let mut b = Builder::new("full");
    let kind = b.header("kind", Width::W8);
    let words: Vec<Field> = (0..8).map(|n| b.header(format!("w{n}"), Width::W32)).collect();
    for (p, pipeline) in [Pipeline::Ingress, Pipeline::Egress].into_iter().enumerate() {
        for stage in 0..12 {
            let of = |n: usize| words[(stage + n) % 8];
            let array = b.register(pipeline, stage, format!("r{p}{stage}"), Cell::W32, 1024);
            let access = array.at(low_bits(of(0), 10)).test(Test::NotEqual, of(1)).then(Alu::add(1)).give_old(of(2));
            b.table(pipeline, stage, "touch").when(kind.is(1)).run(&Action::new("touch").access(access));
            let (add, sub) = (Action::new("add").add(of(3), of(3), of(4)), Action::new("or").or(of(3), of(5), of(6)));
            let key = b.table(pipeline, stage, "key").ternary(of(7));
            key.entry([Match::Masked { mask: 3, value: 1 }], &add, &[]).run(&sub);
            b.table(pipeline, stage, "not").when(kind.is(2)).run(&Action::new("not").set(of(2), 0));
        }
    }
    b.table(Pipeline::Ingress, 0, "send").run(&Action::new("send").forward(Destination::Recirculate));
    Ok((b.build(&Target::TOFINO_1)?, kind))
}

fn main() -> Result<(), Refusal> {
    let (program, kind) = full()?;
    let mut machine = Machine::load(&program);
    let mut packet = machine.packet().with(kind, 1);
    let start = Instant::now();
    for _ in 0..PASSES {
        packet = black_box(machine.pass(packet)).packet.packet;
    }
    let each = start.elapsed() / PASSES;
    println!(
        "{}: 24 stages, 73 tables: {} ns a pass, {:.1} M a second",
        program.name(),
        each.as_nanos(),
        1e3 / each.as_nanos() as f64
    );
    Ok(())
}
