//! Errors are one line that says what to do, with the right exit code.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, assert_error, free_address, kernel_works, midflight, run, run_with, signal};
use rustix::process::Signal;
use std::time::Instant;

#[test]
fn a_wrong_flag_is_named_with_what_is_similar() {
    assert_error(&run(&["switch", "--listn", "x"]), 2, &["--listn", "'--listen'"]);
    assert_error(&run(&["map", "--priority", "9"]), 2, &["'9'", "1..=8"]);
    assert_error(&run(&["submit"]), 2, &["<FUNCTION>"]);
    assert_error(&run(&["frobnicate"]), 2, &["frobnicate"]);
}

#[test]
fn every_subcommand_has_examples_and_exit_codes() {
    let plain = ["switch", "executor", "up", "submit", "map", "status", "top", "completions", "man"];
    let plain = [&plain[..], &["controller", "controller status", "controller operator"]].concat();
    let plain =
        [&plain[..], &["agent", "replica", "store", "store status", "store members", "store policy", "store init"]]
            .concat();
    let plain = [&plain[..], &["submitter", "job", "job list", "job show", "job wait", "job output"]].concat();
    let plain = [&plain[..], &["job cancel", "job remove", "job status"]].concat();
    let with_results = vec!["plan"];
    for (commands, parts) in
        [(plain, &["EXAMPLES", "EXIT CODES"][..]), (with_results, &["EXAMPLES", "RESULTS", "EXIT CODES"])]
    {
        for command in commands {
            let said = run(&command.split(' ').chain(["--help"]).collect::<Vec<_>>());
            assert_eq!(said.code, Some(0), "{said:?}");
            parts.iter().for_each(|part| assert!(said.stdout.contains(part), "no {part} in {command} --help"));
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    assert_error(&run(&["map", "-f", "/nonexistent"]), 2, &["/nonexistent", "No such file", "stdin"]);
    assert_error(&run(&["switch", "--config", "/nonexistent"]), 2, &["/nonexistent", "--print-config"]);
}

#[test]
fn an_unknown_key_is_named_with_file_line_and_the_known_ones() {
    let directory = Directory::new("unknown-key");
    let file = directory.write("m.toml", "[tasks]\nquue = 5\n");
    assert_error(&run(&["switch", "--config", &file]), 2, &["m.toml:2", "`quue`", "`queue`"]);
    let file = directory.write("m.toml", "[tasks]\nlevels = 9\n");
    assert_error(&run(&["switch", "--config", &file]), 2, &["m.toml", "tasks.levels = 9", "1 to 8"]);
}

#[test]
fn an_unknown_resource_lists_the_known_ones() {
    let directory = Directory::new("unknown-resource");
    let file = directory.write("m.toml", "[tasks.resources]\ngpu = 0\n");
    let said = run_with(&["map", "--config", &file, "--resources", "gpu,tpu"], "true\n");
    assert_error(&said, 2, &["`tpu`", "gpu, r0 to r7", "[tasks.resources]"]);
}

#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let taken = switch.address().to_string();
    let said = run(&["switch", "--listen", &taken, "--http", "off"]);
    assert_error(&said, 1, &[&taken, "UDP", "in use", "another port"]);
    let said = run(&["up", "--listen", "127.0.0.1:0", "--http", &switch.http()]);
    assert_error(&said, 1, &[&switch.http(), "in use", "--http"]);
}

#[test]
fn an_address_that_does_not_resolve_is_named() {
    assert_error(&run(&["submit", "noop", "--switch", "nowhere.invalid:7700"]), 2, &["nowhere.invalid", "HOST:PORT"]);
    assert_error(&run(&["executor", "--switch", "localhost"]), 2, &["localhost", "HOST:PORT"]);
}

#[test]
fn a_switch_that_does_not_answer_is_named_with_what_to_do() {
    let nobody = free_address().to_string();
    assert_error(&run(&["submit", "noop", "--switch", &nobody]), 1, &[&nobody, "midflight up", "--switch"]);
    assert_error(&run(&["status", "--http", &nobody]), 1, &[&nobody, "midflight up", "--http"]);
}

#[test]
fn a_switch_that_is_stopped_is_not_waited_for_long() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    signal(&switch.child, Signal::STOP);
    let started = Instant::now();
    let said = run(&["status", "--http", &switch.http()]);
    let took = started.elapsed();
    assert_error(&said, 1, &[&switch.http(), "no answer for 2.00 s", "stopped", "kill -CONT"]);
    assert!(took.as_secs() < 4, "{took:?}");
}

#[test]
fn a_duration_that_is_none_says_how_to_write_it() {
    assert_error(&run(&["submit", "sleep", "long"]), 2, &["`long`", "500ms"]);
    assert_error(&run(&["map", "--timeout", "5"]), 2, &["--timeout", "500ms"]);
}

#[test]
fn the_printed_configuration_starts_a_switch() {
    let said = run(&["switch", "--print-config"]);
    assert_eq!(said.code, Some(0));
    let directory = Directory::new("print-config");
    let file = directory.write("m.toml", &said.stdout);
    let switch = Running::switch("127.0.0.1:0", &["--config", &file]);
    assert!(switch.first_line.starts_with("switch on 127.0.0.1:"), "{}", switch.first_line);
}

#[test]
fn flags_of_the_kernel_engine_need_it() {
    let user = |args: &[&str]| run(&[&["switch", "--http", "off", "--listen", "127.0.0.1:0"], args].concat());
    for args in [&["--interface", "eth0"][..], &["--mode", "generic"], &["--keep"], &["--engine", "user", "--fresh"]] {
        assert_error(&user(args), 2, &["--engine kernel"]);
    }
    assert_error(&user(&["--detach", "--keep"]), 2, &["--detach", "cannot be used with"]);
}

#[cfg(not(feature = "kernel"))]
#[test]
fn a_build_without_the_kernel_engine_says_how_to_get_it() {
    for args in [
        &["switch", "--engine", "kernel", "--interface", "lo", "--listen", "127.0.0.1:0", "--http", "off"][..],
        &["switch", "--detach"],
    ] {
        assert_error(&run(args), 1, &["without the kernel engine", "clang 19", "--features kernel", "./do"]);
    }
}

/// Only what needs no network of its own: the engine's tests are in the laboratory.
#[test]
fn the_kernel_engine_is_in_the_command_if_it_was_asked_for() {
    let said = run(&["switch", "--detach", "--listen", "127.0.0.1:1"]);
    let is_built = !said.stderr.contains("without the kernel engine");
    assert_eq!(is_built, cfg!(feature = "kernel"), "{said:?}");
    if kernel_works() {
        assert_eq!((said.code, said.stdout.as_str()), (Some(0), "port 1: nothing is kept\n"), "{said:?}");
    }
}

#[test]
fn a_full_disk_is_an_error_of_one_line() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    for args in [
        &["status", "--http", &switch.http()][..],
        &["switch", "--print-config"],
        &["switch", "--listen", "127.0.0.1:0", "--http", "off"],
        &["up", "--listen", "127.0.0.1:0", "--http", "off"],
        &["replay", "--limit", "100"],
    ] {
        let child = midflight(args).stdout(full()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let said = child.wait_with_output().unwrap().into();
        assert_error(&said, 1, &["cannot write the output", "No space left"]);
    }
}

/// A stderr on a full device.
fn full() -> std::fs::File {
    std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()
}

#[test]
fn a_stderr_that_takes_nothing_changes_no_exit_code() {
    let up = Running::start(&["up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", "1"]);
    let (switch, nobody) = (up.address().to_string(), free_address().to_string());
    for (args, code) in [
        (&["frobnicate"][..], 2),
        (&["submit", "noop", "--switch", "localhost"], 2),
        (&["status", "--http", &nobody], 1),
        (&["submit", "noop", "--switch", &switch], 0),
        (&["submit", "frobnicate", "--switch", &switch], 1),
        (&["map", "--switch", &switch, "--quiet", "--", "true {}"], 0),
        (&["--log", "trace", "submit", "noop", "--switch", &switch], 0),
    ] {
        let ended = midflight(args).stdout(std::process::Stdio::null()).stderr(full()).status().unwrap();
        assert_eq!(ended.code(), Some(code), "{args:?}");
    }
}

#[test]
fn processes_that_cannot_write_to_stderr_end_as_they_should() {
    let mut up = midflight(&["--log", "trace", "up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", "1"]);
    up.stderr(full());
    let up = Running::spawn(up);
    signal(&up.child, Signal::TERM);
    assert_eq!(up.end().0, Some(0));
}

#[test]
fn a_help_that_cannot_be_written_is_an_error() {
    for args in [&["--help"][..], &["--version"], &["submit", "--help"]] {
        let child = midflight(args).stdout(full()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        assert_error(&child.wait_with_output().unwrap().into(), 1, &["cannot write the output", "No space left"]);
    }
}

#[test]
fn a_drain_beyond_the_clock_is_no_panic() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let executor = Running::executor(switch.address(), 1, &["--drain", "500000000000y"]);
    signal(&executor.child, Signal::TERM);
    assert_eq!(executor.end(), (Some(0), "drained\n".to_owned()));
}

#[test]
fn a_reader_that_went_away_is_no_panic() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_midflight"))
        .args(["status", "--http", &switch.http()])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(!ended.status.success());
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}
