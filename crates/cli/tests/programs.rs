//! Each program once, by the product's own command: the laboratory's tests run its copy of these subcommands.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, kernel_works, run, run_with};

#[test]
fn tasks_run() {
    let up = Running::start(&["up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", "2"]);
    let switch = up.address().to_string();
    let said = run(&["submit", "noop", "-n", "1000", "--switch", &switch]);
    assert!(said.code == Some(0) && said.stderr.contains("1000 ok"), "{said:?}");
    let said = run_with(&["map", "--switch", &switch, "--", "echo done:"], "1\n2\n");
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "done: 1\ndone: 2\n"));
}

#[test]
fn a_store_keeps_what_it_is_given() {
    let directory = Directory::new("programs-store");
    let data = directory.path("data");
    let up = Running::start(&["up", "--store", "--data", &data, "--listen", "127.0.0.1:0", "--http", "off"]);
    let switch = up.address().to_string();
    assert_eq!(run(&["store", "put", "greeting", "hello", "--switch", &switch]).code, Some(0));
    let said = run(&["store", "get", "greeting", "--switch", &switch]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "hello\n"));
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
