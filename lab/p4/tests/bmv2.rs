//! Compares the programs in BMv2 with the model. Skipped where p4c, BMv2 or the rights for network namespaces are missing.

use midflight_p4::differential::{Compared, random, random_planted, transcripts};
use midflight_p4::sources::Planted;
use midflight_p4::tools::Bmv2Tools;
use midflight_p4::{P4Error, Program};
use std::io::Write;

/// `None` if it cannot run here.
fn skipping(act: impl FnOnce(&Bmv2Tools) -> Result<Compared, P4Error>) -> Option<Compared> {
    match Bmv2Tools::find().and_then(|tools| act(&tools)) {
        Ok(compared) => Some(compared),
        Err(error) if error.is_for_want_of_something() => {
            // Written directly, because the test harness captures what `eprintln!` prints.
            let _ = std::io::stderr().write_all(format!("SKIPPED: a program in BMv2: {error}\n").as_bytes());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn compared(act: impl FnOnce(&Bmv2Tools) -> Result<Compared, P4Error>) -> Option<Compared> {
    let compared = skipping(act)?;
    assert!(compared.differences.is_empty(), "{:#?}", compared.differences);
    Some(compared)
}

/// Random packets, interleaved with recirculated ones: compares all outputs and registers.
fn is_the_model_s(program: Program, goes_round: &[&str]) {
    let Some(compared) = compared(|tools| random(tools, program, 1_000, 1)) else { return };
    let leaves = ["ASSIGN", "NO_OP", "RESET", "SUBMIT_ACK", "SUBMIT_ACK that refuses", "nothing", "forwarded"];
    for kind in leaves.iter().chain(goes_round) {
        assert!(compared.seen.contains_key(kind), "no {kind}: {:?}", compared.seen);
    }
}

#[test]
fn the_safe_program_is_the_model_s() {
    is_the_model_s(Program::Safe, &["REST", "SWAP", "RETRIEVE of another level"]);
}

#[test]
fn the_published_program_is_the_model_s() {
    let searches = ["SWAP", "BACK", "OWE_NO_OP", "RETRIEVE of another level"];
    is_the_model_s(Program::Published, &[&searches[..], &["REST", "REPAIR_ADD", "REPAIR_RETRIEVE"]].concat());
}

/// One changed line is found, in an output or a register.
#[test]
fn planted_errors_are_found() {
    let safe = Planted { file: "safe/accept.p4", from: "if (v != m.limit)", to: "if (v != m.limit + 1)" };
    let published = Planted { file: "published/guard.p4", from: "v = v & ~VALID;", to: "v = v;" };
    for (program, planted) in [(Program::Safe, safe), (Program::Published, published)] {
        let act = |tools: &Bmv2Tools| random_planted(tools, program, &[planted], 600, 1);
        let Some(compared) = skipping(act) else { return };
        assert!(!compared.differences.is_empty(), "{planted:?} is not found");
    }
}

/// The packets of some transcripts; `midflight-lab check p4` runs all.
#[test]
fn t4_t5_t7_transcripts_in_bmv2() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts/tasks");
    let read = |name: &str| (name.to_owned(), std::fs::read_to_string(folder.join(name)).expect("readable"));
    let files = ["t7_full.txt", "t4_priority.txt", "t5_constraint.txt"].map(read);
    let Some(compared) = compared(|tools| transcripts(tools, Program::Safe, &files)) else { return };
    assert!(compared.packets > 20, "{compared:?}");
}
