//! Inputs are bounded, also devices and pipes, which have no size.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Directory, MIDFLIGHT};
use std::process::{Command, Stdio};

/// Address space: more than enough, but finite.
const MEMORY_KIB: u32 = 3 << 20;
/// A command that reads forever is killed, which fails the test.
const SECONDS: u32 = 300;

fn run(args: &[&str], stdin: &str) -> CommandOutput {
    let script = format!("ulimit -v {MEMORY_KIB}; exec timeout {SECONDS} \"$0\" \"$@\" < {stdin}");
    let mut command = Command::new("sh");
    command.args(["-c", &script, MIDFLIGHT]).args(args).env("RUST_LOG", "error").env_remove("MIDFLIGHT_TRACES");
    CommandOutput::from(command.stdin(Stdio::null()).output().unwrap())
}

#[track_caller]
fn assert_refused(args: &[&str], stdin: &str) {
    let said = run(args, stdin);
    assert!(matches!(said.code, Some(1 | 2)), "{args:?}: {said:?}");
    assert!(said.stderr.starts_with("error: ") && said.stdout.is_empty(), "{args:?}: {said:?}");
    // The error of a full address space.
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
        &["switch", "--program", "cache", "--config", zero],
        &["replica", "--config", zero, "--id", "1", "--data", &store],
        &["executor", "--config", zero, "--count", "a=1"],
        &["up", "--config", zero],
        &["controller", "--config", zero],
        &["controller", "--config", &controller],
        &["controller", "operator", "t", "--config", zero],
        &["store", "get", "a", "--config", zero],
        &["store", "status", "--config", zero],
        &["cache", "get", "a", "--cache", zero],
        &["submit", "noop", "--resources", "gpu", "--config", zero],
        &["map", "--joblog", zero, "--resume", "--", "echo"],
        &["sim", "run", zero],
        &["sim", "sweep", zero],
        &["sim", "cell", zero],
        &["sim", "check", "tasks", "--trial", zero],
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
        &["store", "put", "a", "-", "--switch", "127.0.0.1:9", "--timeout", "100ms"],
        &["cache", "set", "a", "-", "--operator", "127.0.0.1:9", "--timeout", "100ms"],
        &["map", "--", "echo"],
    ] {
        assert_refused(args, "/dev/zero");
    }
}

/// The file system does not know its size.
#[test]
fn a_long_pipe_is_refused() {
    let directory = Directory::new("inputs-pipe");
    let pipe = directory.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writes = format!("yes '# a comment' > '{pipe}'");
    let mut writer = Command::new("sh").args(["-c", &writes]).spawn().unwrap();
    assert_refused(&["plan", "--topology", &pipe], "/dev/null");
    // It ends by SIGPIPE, or has exited.
    let _ = writer.kill();
    writer.wait().unwrap();
}
