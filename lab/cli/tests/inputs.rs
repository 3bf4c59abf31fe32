//! Files that a command reads have a bound, also those that have no size: a device, a pipe.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, MIDFLIGHT, Said};
use std::process::{Command, Stdio};

/// Address space of the commands, in KiB: much more than they need, and less than what has no end.
const MEMORY_KIB: u32 = 3 << 20;
/// What reads for ever is killed, and fails the test by its exit code.
const SECONDS: u32 = 300;

/// Runs a command whose input has no end.
fn run(args: &[&str], stdin: &str) -> Said {
    let script = format!("ulimit -v {MEMORY_KIB}; exec timeout {SECONDS} \"$0\" \"$@\" < {stdin}");
    let mut command = Command::new("sh");
    command.args(["-c", &script, MIDFLIGHT]).args(args).env("RUST_LOG", "error").env_remove("MIDFLIGHT_TRACES");
    Said::from(command.stdin(Stdio::null()).output().unwrap())
}

#[track_caller]
fn assert_refused(args: &[&str], stdin: &str) {
    let said = run(args, stdin);
    assert!(matches!(said.code, Some(1 | 2)), "{args:?}: {said:?}");
    assert!(said.stderr.starts_with("error: ") && said.stdout.is_empty(), "{args:?}: {said:?}");
    // What the kernel says where the address space is full.
    assert!(!said.stderr.contains("out of memory"), "{args:?}: {said:?}");
}

#[test]
fn files_without_an_end_are_refused() {
    let directory = Directory::new("inputs");
    let topology = "core = [\"c\"]\nracks = [{ id = \"r\", tor = \"t\", hosts = [\"h\"] }]\n";
    let network = directory.write("net.toml", topology);
    let endless = "controllers = [\"127.0.0.1:7790\"]\ntopology = \"/dev/zero\"\n";
    let controller = directory.write("controller.toml", endless);
    let store = directory.path("data");
    let zero = "/dev/zero";
    for args in [
        &["plan", "--topology", zero][..],
        &["plan", "--topology", &network, "--traffic", zero],
        &["switch", "--config", zero],
        &["switch", "--program", "replicas", "--config", zero],
        &["replica", "--config", zero, "--id", "1", "--data", &store],
        &["executor", "--config", zero, "--count", "a=1"],
        &["up", "--config", zero],
        &["controller", "--config", zero],
        &["controller", "--config", &controller],
        &["controller", "operator", "t", "--config", zero],
        &["kv", "get", "a", "--config", zero],
        &["kv", "status", "--config", zero],
        &["cache", "get", "a", "--cache", zero],
        &["submit", "noop", "--resources", "gpu", "--config", zero],
        &["map", "--joblog", zero, "--resume", "--", "echo"],
        &["sim", "run", zero],
        &["sim", "sweep", zero],
        &["sim", "cell", zero],
        &["sim", "check", "tasks", "--trial", zero],
        &["sim", "figure", "bolt-13a", "--compare", zero, "--out", &store],
        &["replay", zero],
        &["check", "history", zero],
    ] {
        assert_refused(args, "/dev/null");
    }
}

#[test]
fn an_endless_stdin_is_refused() {
    for args in [
        &["sim", "cell"][..],
        &["kv", "put", "a", "-", "--switch", "127.0.0.1:9", "--timeout", "100ms"],
        &["cache", "set", "a", "-", "--operator", "127.0.0.1:9", "--timeout", "100ms"],
        &["map", "--", "echo"],
    ] {
        assert_refused(args, "/dev/zero");
    }
}

/// The bound counts what has come through a pipe, whose size the file system does not say.
#[test]
fn a_long_pipe_is_refused() {
    let directory = Directory::new("inputs-pipe");
    let pipe = directory.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writes = format!("yes '# a comment' > '{pipe}'");
    let mut writer = Command::new("sh").args(["-c", &writes]).spawn().unwrap();
    assert_refused(&["plan", "--topology", &pipe], "/dev/null");
    // It ends by SIGPIPE, or has ended.
    let _ = writer.kill();
    writer.wait().unwrap();
}
