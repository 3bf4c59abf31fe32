//! Wrong usage, and help texts.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{assert_error, midflight, run};

#[test]
fn pipelines_say_what_they_cannot_do() {
    let pipeline = |args: &[&str]| run(&[&["pipeline", "--http", "off"], args].concat());
    assert_error(&pipeline(&["--program", "cache"]), 2, &["midflight switch"]);
    assert_error(&pipeline(&["--program", "store", "--engine", "bmv2"]), 2, &["--engine asic-safe"]);
    assert_error(&pipeline(&["--interface", "lo"]), 2, &["--engine bmv2"]);
    assert_error(&pipeline(&["--listen", "[::1]:0"]), 2, &["IPv4", "--listen"]);
    assert_error(&pipeline(&["--poll", "1s"]), 2, &["10us to 65ms"]);
}

#[test]
fn a_stderr_that_takes_nothing_changes_no_exit_code() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut check = midflight(&["sim", "check", "tasks", "--seeds", "1"]);
    let ended = check.stdout(std::process::Stdio::null()).stderr(full).status().unwrap();
    assert_eq!(ended.code(), Some(0));
}
