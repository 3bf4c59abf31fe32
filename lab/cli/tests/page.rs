//! The live pages in a real browser, with the scenarios of `tests/page/`.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::path::Path;
use std::process::Command;

/// Exit code of `tests/page/run` without a browser.
const SKIPPED: i32 = 77;

#[test]
fn pages_show_an_executor_a_replica_a_server_and_an_operator_that_die() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/page/run");
    let mut command = Command::new(run);
    command.arg(env!("CARGO_BIN_EXE_midflight-lab"));
    command.args(std::env::var_os("MIDFLIGHT_SCREENSHOTS"));
    let said = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    if said.status.code() == Some(SKIPPED) {
        eprintln!("SKIPPED: the page in a browser: {}", stdout.trim());
        return;
    }
    assert!(said.status.success(), "{stdout}\n{stderr}");
}
