//! An urgent task overtakes waiting ones: one slot, a queue of slow tasks, then a task of the highest priority.
//!
//! `cargo run --example priorities`

use midflight::{Client, Executor, Job, Switch, functions};
use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let switch = Switch::builder().start()?;
    let _executor = Executor::builder().switch(switch.local_addr()).slots(1).start()?;
    let client = Client::builder().switch(switch.local_addr()).connect()?;
    let sleep = u64::try_from(Duration::from_millis(10).as_nanos())?.to_be_bytes();

    // Reports the order in which tasks end.
    let (ended, order) = mpsc::channel();
    let submit = |name: &'static str, priority: u8, count: usize| {
        let ended = ended.clone();
        let job = Job::builder(functions::SLEEP).priority(priority).repeat(count, sleep).build();
        client.submit_to(job, move |_, _| {
            // The receiver lives until the end of main.
            let _ = ended.send(name);
        })
    };
    submit("batch", 8, 10)?;
    // The first task of the batch is running when the urgent one arrives; the others have to wait.
    let first = order.recv()?;
    submit("urgent", 1, 1)?;
    let rest: Vec<_> = order.iter().take(10).collect();

    println!("{first}, then {}", rest.join(", "));
    let place = rest.iter().position(|&name| name == "urgent");
    assert!(place.is_some_and(|place| place <= 2), "the urgent task came at place {place:?}");
    Ok(())
}
