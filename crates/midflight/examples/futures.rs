//! Async code at both ends, with user-defined types: `cargo run -p midflight --features async,serde --example futures`.

use midflight::{Client, Executor, Job, Switch, TaskContext};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Question {
    city: String,
    after: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    letters: usize,
}

async fn look_up(_task: TaskContext, question: Question) -> Result<Answer, String> {
    tokio::time::sleep(question.after).await; // a real function would wait for a server; a cancelled task ends here
    Ok(Answer { letters: question.city.len() })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let switch = Switch::builder().start()?;
    let _executor = Executor::builder()
        .switch(switch.local_addr())
        .slots(100) // concurrent waits, on one thread
        .register_typed_async("look up", look_up)
        .start()?;
    let client = Client::builder().switch(switch.local_addr()).connect()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut job = Job::builder("look up");
        for (city, ms) in [("Oslo", 30), ("Reykjavik", 10), ("Ulaanbaatar", 20)] {
            job = job.typed_task(&Question { city: city.to_owned(), after: Duration::from_millis(ms) })?;
        }
        let mut answers = client.submit_async(job.build()).await?.stream();
        while let Some((place, outcome)) = answers.next().await {
            println!("task {place}: {:?}", outcome?.typed::<Answer>()?);
        }
        Ok(())
    })
}
