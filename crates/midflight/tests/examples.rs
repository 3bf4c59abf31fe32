//! Runs the examples, which check themselves; `cargo test` builds them with this test.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::process::Command;

fn run(example: &str) -> String {
    // This test is target/PROFILE/deps/examples-HASH.
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().with_file_name("examples").join(example);
    assert!(program.exists(), "{} is missing: cargo build -p midflight --examples", program.display());
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn hello_greets_and_reports_the_error() {
    assert_eq!(run("hello"), "Hello, Ada!\nHello, Grace!\nno greeting: nobody to greet\n");
}

#[test]
fn pi_is_mapped_and_reduced() {
    assert!(run("pi").starts_with("pi is about 3.14"));
}

#[test]
fn t4_the_urgent_task_overtakes_the_batch() {
    let order = run("priorities");
    assert!(order.starts_with("batch, then ") && order.contains("urgent, batch"), "{order}");
}

#[cfg(all(feature = "async", feature = "serde"))]
#[test]
fn futures_answer_in_the_order_in_which_they_end() {
    let order: Vec<String> = run("futures").lines().map(|line| line.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(order, ["task 1", "task 2", "task 0"]);
}
