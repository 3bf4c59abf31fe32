//! The programs in BMv2 beside the model. Skipped where p4c, BMv2 or the rights for network namespaces are missing.

use midflight_p4::differential::{Compared, random, transcripts};
use midflight_p4::tools::Bmv2Tools;
use midflight_p4::{P4Error, Program};
use std::io::Write;

fn compared(act: impl FnOnce(&Bmv2Tools) -> Result<Compared, P4Error>) -> Option<Compared> {
    match Bmv2Tools::find().and_then(|tools| act(&tools)) {
        Ok(compared) => {
            assert!(compared.differences.is_empty(), "{:#?}", compared.differences);
            Some(compared)
        }
        Err(error @ (P4Error::Missing { .. } | P4Error::Io { .. })) => {
            // Written directly, because the test harness captures what `eprintln!` prints.
            let _ = std::io::stderr().write_all(format!("SKIPPED: a program in BMv2: {error}\n").as_bytes());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Random packets, in any order with those that go round: all that comes out, and all registers.
fn is_the_model_s(program: Program) {
    let Some(compared) = compared(|tools| random(tools, program, 1_000, 1)) else { return };
    for kind in ["ASSIGN", "NO_OP", "RESET", "SUBMIT_ACK", "SUBMIT_ACK that refuses", "round", "nothing", "forwarded"] {
        assert!(compared.seen.contains_key(kind), "no {kind}: {:?}", compared.seen);
    }
}

#[test]
fn the_safe_program_is_the_model_s() {
    is_the_model_s(Program::Safe);
}

#[test]
fn the_published_program_is_the_model_s() {
    is_the_model_s(Program::Published);
}

/// The packets of some transcripts; `midflight check p4` runs all.
#[test]
fn t4_t5_t7_transcripts_in_bmv2() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts/tasks");
    let read = |name: &str| (name.to_owned(), std::fs::read_to_string(folder.join(name)).expect("readable"));
    let files = ["t7_full.txt", "t4_priority.txt", "t5_constraint.txt"].map(read);
    let Some(compared) = compared(|tools| transcripts(tools, Program::Safe, &files)) else { return };
    assert!(compared.packets > 20, "{compared:?}");
}
