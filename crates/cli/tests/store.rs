//! The store as processes: a switch, replicas, and the commands of a client.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, assert_error, run, status};

const STORE: &str = r#"
[[reads.set]]
number = 1
cluster = 42
switches = ["127.0.0.1:7700"]
replicas = [
  { id = 1, address = "127.0.0.1:7710", links = "127.0.0.1:7711" },
  { id = 2, address = "127.0.0.1:7720", links = "127.0.0.1:7721" },
  { id = 3, address = "127.0.0.1:7730", links = "127.0.0.1:7731" },
]
"#;

#[test]
fn a_switch_runs_the_program_whose_table_the_configuration_has() {
    let directory = Directory::new("store-switch");
    let file = directory.write("store.toml", STORE);
    let switch = Running::switch("127.0.0.1:0", &["--config", &file]);
    let seen = status(&switch.http());
    assert_eq!((seen["sets"][0]["set"].as_u64(), seen["sets"][0]["sessions"].as_u64()), (Some(1), Some(0)), "{seen}");
    let said = run(&["status", "--http", &switch.http()]);
    assert!(said.stdout.contains("\nset 1     0 sessions, 0 writes"), "{said:?}");

    let said = run(&["switch", "--program", "reads", "--print-config"]);
    assert!(said.stdout.contains("\n[reads]\n") && !said.stdout.contains("[tasks]"), "{said:?}");
}

#[test]
fn r7_a_switch_of_a_store_says_what_it_needs() {
    let directory = Directory::new("store-refused");
    let file = directory.write("store.toml", STORE);
    let switch = |more: &[&str]| run(&[&["switch", "--listen", "127.0.0.1:0", "--http", "off"], more].concat());
    for engine in ["kernel", "asic-safe"] {
        let said = switch(&["--config", &file, "--engine", engine, "--program", "reads"]);
        assert_error(&said, 2, &["reads runs in user space only", "--engine user"]);
    }
    assert_error(&switch(&["--program", "reads"]), 2, &["no replica set", "[[reads.set]]"]);
    assert_error(&switch(&["--config", &file, "--program", "tasks"]), 2, &["store.toml:2", "`reads`", "`tasks`"]);
}
