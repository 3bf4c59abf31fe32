//! Errors and interruption of `midflight-lab pipeline --engine bmv2`. `lab/p4` and `midflight-lab check p4` run switches.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, MIDFLIGHT, skip, wait_until};
use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// Writes its process id and hangs.
const HANGS: &str =
    "#!/bin/sh\necho $$ > $TMPDIR/../compiler.tmp\nmv $TMPDIR/../compiler.tmp $TMPDIR/../pid\nexec sleep 600\n";

/// Interrupts the process group, as a terminal does.
fn interrupted(directory: &Directory, command: &mut Command) -> Output {
    let script = directory.script("p4c", HANGS);
    std::fs::create_dir(directory.path("temporary")).unwrap();
    command
        .env("P4C", &script)
        .env("BMV2", &script)
        .env("TMPDIR", directory.path("temporary"))
        .env("RUST_LOG", "error");
    let child = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    let pid = || std::fs::read_to_string(directory.path("pid"));
    wait_until("the compiler runs", || pid().is_ok());
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let compiler = format!("/proc/{}/stat", pid().unwrap().trim());
    // A process that has exited but was not waited for is a zombie.
    let is_gone = || std::fs::read_to_string(&compiler).map_or(true, |stat| stat.contains(") Z "));
    wait_until("the compiler is gone", is_gone);
    assert_eq!(std::fs::read_dir(directory.path("temporary")).unwrap().count(), 0, "a folder is left");
    output
}

#[test]
fn ctrl_c_while_the_program_compiles_ends_the_switch_quietly() {
    if !geteuid().is_root() {
        return skip("a network namespace of its own: it needs root");
    }
    let directory = Directory::new("bmv2-interrupted");
    let script = format!(
        "ip link set lo up && echo 0 > /proc/sys/net/ipv4/ip_forward && exec {MIDFLIGHT} pipeline --engine bmv2 --interface lo --listen 127.0.0.1:7700 --http off"
    );
    let output = interrupted(&directory, Command::new("unshare").args(["--net", "sh", "-c", &script]));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.as_str(), output.stdout.len()), (Some(0), "", 0));
}

#[test]
fn ctrl_c_while_a_check_compiles_ends_it_quietly() {
    let directory = Directory::new("bmv2-check-interrupted");
    let mut check = Command::new(MIDFLIGHT);
    check.args(["check", "p4", "--only", "compare"]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let output = interrupted(&directory, &mut check);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.as_str(), output.stdout.len()), (Some(130), "", 0));
}
