//! The model's side alone: it needs neither compiler nor switch.

use crate::frame::{CLIENTS, CPU, IP, MF, seal, word16};
use crate::heard::switches;
use crate::random::{Draw, entered};
use crate::twin::{Expected, Flight, Twin};
use midflight_wire::{Packet, parse};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::path::Path;

/// All passes of a frame; the frame that leaves at last.
fn all_passes(twin: &mut Twin, by: u16, frame: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut expected = twin.frame(by, frame);
    loop {
        match expected {
            Expected::Nothing => return None,
            Expected::Frame(port, frame) => return Some((port, frame)),
            Expected::Round(flight) => expected = twin.again(flight),
        }
    }
}

/// Where both must say the same: a SUBMIT that the engine takes or refuses, a RETRIEVE of a slot that it knows.
fn is_comparable(datagram: &[u8], answer: &[u8]) -> bool {
    matches!(
        (parse(datagram), parse(answer)),
        (Ok(Packet::Submit(..)), Ok(Packet::SubmitAck(..)))
            | (Ok(Packet::Retrieve(..)), Ok(Packet::Assign(..) | Packet::NoOp(..)))
    )
}

/// What the model says of the packets of the transcripts, in frames, is what the asic engine answers.
#[test]
fn the_twin_says_what_the_engine_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts/tasks");
    let mut compared = 0;
    for name in ["t7_full.txt", "t4_priority.txt", "t5_constraint.txt", "t3_fifo.txt", "t19_place.txt"] {
        let text = std::fs::read_to_string(folder.join(name)).expect("readable");
        for switch in switches(name, &text).expect("it runs") {
            let mut twin = Twin::build(&switch.entered(128, 4096)).expect("it fits");
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

/// Each kind of frame is drawn, each answer is a valid packet to the sender of its question, and checksums are right.
#[test]
fn random_frames_are_of_all_kinds() {
    let entered = entered(4, 16, u32::MAX - 3);
    let mut twin = Twin::build(&entered).expect("it fits");
    let mut draw = Draw::new(entered, Pcg64Mcg::seed_from_u64(1));
    let (mut flights, mut kinds) = (Vec::<Flight>::new(), std::collections::BTreeSet::new());
    for _ in 0..10_000 {
        let expected = if flights.len() > 4 && draw.rng().random_bool(0.7) {
            let at = draw.rng().random_range(0..flights.len());
            twin.again(flights.swap_remove(at))
        } else {
            let (by, frame) = draw.frame();
            twin.frame(by, &frame)
        };
        match expected {
            Expected::Nothing => {
                kinds.insert("nothing");
            }
            Expected::Round(flight) => flights.push(flight),
            Expected::Frame(port, frame) => {
                kinds.insert(crate::frame::named(port, &frame));
                let at = if port == CPU { 2 } else { 0 };
                let mut sealed = frame[at..].to_vec();
                seal(&mut sealed);
                assert_eq!(sealed, frame[at..], "the checksum");
                if port != CPU {
                    let end = IP + usize::from(word16(&frame, IP + 2));
                    assert!(crate::frame::named(port, &frame) == "forwarded" || parse(&frame[MF..end]).is_ok());
                }
            }
        }
    }
    let all = [
        "ASSIGN",
        "NO_OP",
        "RESET",
        "SUBMIT_ACK",
        "SUBMIT_ACK that refuses",
        "forwarded",
        "nothing",
        "to the controller",
    ];
    assert!(all.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}
