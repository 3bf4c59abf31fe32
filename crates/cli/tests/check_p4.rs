//! `midflight check p4`: what a script sees of it where a tool is missing. `crates/p4/tests` runs the programs.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::process::Command;

#[test]
fn without_a_compiler_it_says_so_and_compares_nothing() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_midflight"));
    let output = command.args(["check", "p4"]).env("P4C", "/nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.starts_with("SKIPPED: check p4: P4C is /nowhere, which neither is p4c-bm2-ss")
            && said.lines().count() == 1,
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn a_folder_of_transcripts_that_is_not_there_is_wrong_usage() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_midflight"));
    let output = command.args(["check", "p4", "--transcripts", "/nowhere"]).env("P4C", "/nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("--transcripts /nowhere"), "{said}");
}
