//! Tests of the model alone, without compiler or switch.

use crate::Program;
use crate::around::{CLIENTS, named};
use crate::frame::{CPU, IP, MF, seal, word16};
use crate::heard::switches;
use crate::random::{Draw, entered};
use crate::tofino::{Report, Target, Used};
use crate::twin::{Expected, Flight, Twin};
use midflight_wire::tasks::{Packet, parse};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;
use std::path::Path;

/// All passes of a frame; returns the frame that finally leaves.
fn all_passes(twin: &mut Twin, by: u16, frame: &[u8]) -> Option<(u16, Vec<u8>)> {
    let Expected { frame: mut sent, round: mut flights } = twin.frame(by, frame);
    while !flights.is_empty() {
        let Expected { frame, round } = twin.again(flights.remove(0));
        sent = sent.or(frame);
        flights.extend(round);
    }
    sent
}

/// Whether both must agree: a SUBMIT that the engine takes or refuses, a RETRIEVE of a slot that it knows.
fn is_comparable(datagram: &[u8], answer: &[u8]) -> bool {
    matches!(
        (parse(datagram), parse(answer)),
        (Ok(Packet::Submit(..)), Ok(Packet::SubmitAck(..)))
            | (Ok(Packet::Retrieve(..)), Ok(Packet::Assign(..) | Packet::NoOp(..)))
    )
}

/// For the packets of the transcripts, in frames, the model's results equal the asic engine's answers.
#[test]
fn the_twin_says_what_the_engine_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts/tasks");
    let mut compared = 0;
    for name in ["t7_full.txt", "t4_priority.txt", "t5_constraint.txt", "t3_fifo.txt", "t19_place.txt"] {
        let text = std::fs::read_to_string(folder.join(name)).expect("readable");
        for switch in switches(name, &text).expect("it runs") {
            let mut twin = Twin::build(Program::Safe, &switch.entered(128, 4096)).expect("it fits");
            for ((from, datagram), answers) in switch.datagrams.iter().zip(&switch.answers) {
                let sent = all_passes(&mut twin, CLIENTS, &from.to_switch(datagram));
                let [answer] = &answers[..] else { continue };
                if is_comparable(datagram, answer) {
                    let (_, frame) = sent.expect("an answer");
                    assert_eq!(&frame[MF..], answer, "{name}: {:?}", parse(datagram));
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 50, "{compared}");
}

/// A register with another name in the model would not be compared.
#[test]
fn each_register_of_a_program_is_one_of_the_model() {
    for (program, count) in [(Program::Safe, 26), (Program::Published, 18 + 1)] {
        let twin = Twin::build(program, &entered(4, 16, 0)).expect("it fits");
        assert_eq!(twin.registers().len(), count, "{program:?}");
    }
}

/// Each kind of frame is drawn, each answer is a valid packet to its request's sender, and checksums are right.
#[test]
fn random_frames_are_of_all_kinds() {
    for program in Program::ALL {
        let kinds = kinds_of(program);
        assert!(ALL.iter().all(|kind| kinds.contains(kind)), "{program:?}: {kinds:?}");
    }
}

const ALL: [&str; 8] =
    ["ASSIGN", "NO_OP", "RESET", "SUBMIT_ACK", "SUBMIT_ACK that refuses", "forwarded", "nothing", "to the controller"];

fn kinds_of(program: Program) -> BTreeSet<&'static str> {
    let entered = entered(4, 16, u32::MAX - 3);
    let mut twin = Twin::build(program, &entered).expect("it fits");
    let mut draw = Draw::new(entered, Pcg64Mcg::seed_from_u64(1));
    let (mut flights, mut kinds) = (Vec::<Flight>::new(), BTreeSet::new());
    for _ in 0..10_000 {
        let Expected { frame, round } = if flights.len() > 4 && draw.rng().random_bool(0.7) {
            let at = draw.rng().random_range(0..flights.len());
            twin.again(flights.swap_remove(at))
        } else {
            let (by, frame) = draw.frame();
            twin.frame(by, &frame)
        };
        if frame.is_none() && round.is_empty() {
            kinds.insert("nothing");
        }
        flights.extend(round);
        let Some((port, frame)) = frame else { continue };
        kinds.insert(named(port, &frame));
        let mut sealed = frame[if port == CPU { 2 } else { 0 }..].to_vec();
        let as_sent = sealed.clone();
        seal(&mut sealed);
        assert_eq!(sealed, as_sent, "the checksum");
        if port != CPU {
            let end = IP + usize::from(word16(&frame, IP + 2));
            assert!(named(port, &frame) == "forwarded" || parse(&frame[MF..end]).is_ok());
        }
    }
    kinds
}

/// After a change of a program, compile it again: `midflight-lab check p4 --report p4/reports`, with the tools.
#[test]
fn the_reports_are_of_these_sources() {
    for (program, target) in Target::ALL.into_iter().flat_map(|target| Program::ALL.map(|program| (program, target))) {
        let report = Report::kept(program, target).expect("readable");
        assert_eq!(report.program, program.name());
        let file = target.file(program);
        assert!(report.is_of_these_sources(program, target), "p4/reports/{file}.toml is of other sources");
        assert!(report.stages <= target.stages && report.entries_per_level >= 16_384, "{report:?}");
    }
}

/// Output of p4c and its assembler, reduced to the parts that are read.
#[test]
fn what_a_program_takes_is_read_from_what_the_assembler_writes() {
    let memory = |kind: &str, blocks: &str, spare: &str| {
        format!(
            r#""memory_resource_allocation": {{"memory_type": "{kind}", "memory_units_and_vpns": [{{"memory_units": [{blocks}]}}], "spare_bank_memory_unit": {spare}}}"#
        )
    };
    let context = format!(
        r#"{{"tables": [
            {{"table_type": "stateful", "name": "a_bank_0", "size": 32768}},
            {{"table_type": "stateful", "name": "a_bank_1", "size": 32768, "stage_tables": [{{"stage_number": 3, {}}}]}},
            {{"table_type": "match", "match_attributes": {{"stage_tables": [{{"stage_number": 4, {}}}, {{"stage_number": 3, {}}}]}}}}],
            "phv_allocation": [
                {{"stage_number": 0, "ingress": [{{"phv_number": 64, "word_bit_width": 8, "container_type": "normal"}},
                    {{"phv_number": 256, "word_bit_width": 8, "container_type": "tagalong"}}], "egress": []}},
                {{"stage_number": 1, "ingress": [{{"phv_number": 64, "word_bit_width": 8, "container_type": "normal"}}],
                    "egress": [{{"phv_number": 0, "word_bit_width": 32, "container_type": "normal"}}]}}]}}"#,
        memory("sram", "1, 2", "3"),
        memory("tcam", "5", "null"),
        // A block that is named twice counts once.
        memory("sram", "2, 7", "null"),
    );
    let used = Used::of(&serde_json::from_str(&context).expect("JSON"));
    assert_eq!((used.stages, used.sram, used.tcam, used.cells), (5, 4, 1, 65_536));
    assert_eq!(used.containers, [1, 0, 1]);
}
