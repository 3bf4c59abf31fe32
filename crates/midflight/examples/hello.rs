//! A function, an executor that offers it, and a client that calls it: a whole cluster in one process.
//!
//! `cargo run --example hello`

use midflight::{Client, Executor, Job, Switch};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    // In production these are three processes on different machines: `midflight switch`, and two programs like this one.
    let switch = Switch::builder().start()?;
    let _executor = Executor::builder().switch(switch.local_addr()).register("greet", greet).start()?;
    let client = Client::builder().switch(switch.local_addr()).connect()?;

    let job = client.submit(Job::builder("greet").task("Ada").task("Grace").task("").build())?;
    let outcomes = job.wait(); // in the order of the tasks
    for outcome in &outcomes {
        match outcome {
            Ok(result) => println!("{}", String::from_utf8_lossy(&result.value)),
            Err(error) => println!("no greeting: {error}"),
        }
    }
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 2);
    Ok(())
}

/// Runs on the executor. An error (or a panic) reaches the caller as a message.
fn greet(_task: &midflight::TaskContext, name: &[u8]) -> Result<Vec<u8>, String> {
    let name = std::str::from_utf8(name).map_err(|error| format!("a name is UTF-8: {error}"))?;
    if name.is_empty() {
        return Err("nobody to greet".into());
    }
    Ok(format!("Hello, {name}!").into_bytes())
}
