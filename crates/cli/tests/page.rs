//! The pages of all programs, in a real browser: `tests/page/` has the scenarios.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::path::Path;
use std::process::Command;

/// What `tests/page/run` ends with where there is no browser.
const SKIPPED: i32 = 77;

#[test]
fn pages_show_an_executor_a_replica_a_server_and_an_operator_that_die() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/page/run");
    let mut command = Command::new(run);
    command.arg(env!("CARGO_BIN_EXE_midflight"));
    command.args(std::env::var_os("MIDFLIGHT_SCREENSHOTS"));
    let said = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    if said.status.code() == Some(SKIPPED) {
        eprintln!("SKIPPED: the page in a browser: {}", stdout.trim());
        return;
    }
    assert!(said.status.success(), "{stdout}\n{stderr}");
}
