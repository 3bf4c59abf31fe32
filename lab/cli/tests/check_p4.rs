//! `midflight-lab check p4` without its tools. `lab/p4/tests` runs the programs.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::process::Command;

#[test]
fn without_tools_it_says_so_and_does_nothing() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_midflight-lab"));
    let command = command.args(["check", "p4"]).env("P4C", "/nowhere").env("P4C_TOFINO", "/nowhere");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let missing = [
        "the comparison with the model: P4C is /nowhere, which neither is p4c-bm2-ss",
        "tasks through BMv2: P4C is /nowhere",
        "the compilation for Tofino: P4C_TOFINO is /nowhere, which neither is p4c-barefoot",
    ];
    assert_eq!(said.lines().count(), missing.len(), "{said}");
    for (line, what) in said.lines().zip(missing) {
        assert!(line.starts_with(&format!("SKIPPED: check p4: {what}")), "{line}");
    }
    assert!(output.stdout.is_empty());
}
