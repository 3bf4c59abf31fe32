//! `midflight switch --engine bmv2` where it cannot start: what it says. `crates/p4` and `midflight check p4` run switches.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::process::Command;

/// Exit code and message.
fn switch(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_midflight"));
    command.args(["switch", "--http", "off", "--engine"]).args(arguments).env("P4C", "/nowhere");
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn without_a_tool_it_names_the_tool() {
    for engine in ["bmv2", "bmv2-published"] {
        let (code, said) = switch(&[engine, "--interface", "lo", "--listen", "127.0.0.1:0"]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("P4C is /nowhere, which neither is p4c-bm2-ss") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn wrong_usage_says_what_is_right() {
    let address = ["--listen", "127.0.0.1:0"];
    for (arguments, says) in [
        (vec!["bmv2", "--interface", "lo"], "serves one address of IPv4: name it by --listen"),
        (vec!["bmv2", "--interface", "lo", "--listen", "[::1]:0"], "serves one address of IPv4"),
        ([&["bmv2"][..], &address].concat(), "serves interfaces: name them"),
        ([&["bmv2", "--interface", "lo", "--keep"][..], &address].concat(), "--keep is for the kernel engine"),
        ([&["bmv2", "--interface", "lo", "--program", "reads"][..], &address].concat(), "only tasks does"),
    ] {
        let (code, said) = switch(&arguments);
        assert!(code == Some(2) && said.contains(says), "{arguments:?}: {code:?} {said}");
    }
}
