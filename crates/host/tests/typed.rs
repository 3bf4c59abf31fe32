//! Functions with typed arguments and results.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{client, start_executor, switch};
use midflight_host::{Error, Executor, Job, TaskContext, TaskError};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Request {
    name: String,
    sizes: Vec<u32>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
enum Answer {
    Sum(u64),
    Empty,
}

fn sum(_task: &TaskContext, request: Request) -> Result<Answer, String> {
    if request.name == "refused" {
        return Err("not that one".to_owned());
    }
    let sum = request.sizes.iter().map(|size| u64::from(*size)).sum();
    Ok(if request.sizes.is_empty() { Answer::Empty } else { Answer::Sum(sum) })
}

fn request(name: &str, sizes: &[u32]) -> Request {
    Request { name: name.to_owned(), sizes: sizes.to_vec() }
}

#[test]
fn a_typed_function_is_called_and_its_value_comes_back() {
    let switch = switch();
    let later = |_task: TaskContext, request: Request| async move { Ok::<_, String>(request.sizes.len() as u32) };
    let builder = Executor::builder().register_typed("sum", sum).register_typed_async("count", later);
    let _executor = start_executor(builder, switch.local_addr(), 2);
    let client = client(switch.local_addr());
    let call = |request: &Request| client.submit_typed::<_, Answer>("sum", request).unwrap().wait();
    assert_eq!(call(&request("a", &[1, 2, 3])), Ok(Answer::Sum(6)));
    assert_eq!(call(&request("a", &[])), Ok(Answer::Empty));
    assert_eq!(call(&request("by reference", &[1_000_000; 2_000])), Ok(Answer::Sum(2_000_000_000)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let count = client.submit_typed::<_, u32>("count", &request("b", &[4, 4])).unwrap();
    assert_eq!(runtime.block_on(count), Ok(2));
    let refused = call(&request("refused", &[])).unwrap_err();
    assert!(matches!(&refused, Error::Task(TaskError::Failed { message, .. }) if message == "not that one"));

    let job = Job::builder("sum")
        .priority(1)
        .typed_task(&request("c", &[5]))
        .unwrap()
        .typed_task(&request("d", &[6]))
        .unwrap();
    let sums: Vec<Result<Answer, Error>> =
        client.submit(job.build()).unwrap().wait().into_iter().map(|outcome| outcome.unwrap().typed()).collect();
    assert_eq!(sums, [Ok(Answer::Sum(5)), Ok(Answer::Sum(6))]);
}

#[test]
fn bytes_of_another_type_are_a_failure_that_says_so() {
    let switch = switch();
    let _executor = start_executor(Executor::builder().register_typed("sum", sum), switch.local_addr(), 1);
    let client = client(switch.local_addr());
    let outcome = client.submit(Job::builder("sum").task([255; 9]).build()).unwrap().wait().remove(0);
    let message = common::failure(outcome);
    assert!(message.starts_with("an argument of 9 bytes is no typed::Request ("), "{message}");
    assert!(message.ends_with("use the same types in client and executor"), "{message}");
    let other = client.submit_typed::<_, String>("sum", &request("a", &[1])).unwrap().wait();
    assert!(matches!(other, Err(Error::Codec(_))), "{other:?}");
}
