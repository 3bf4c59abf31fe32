//! Async clients: submitting without room, and outcomes as a stream.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{start_executor, switch};
use futures_core::Stream;
use midflight_host::{Client, Error, Executor, Job};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::Duration;

fn ms(ms: u64) -> [u8; 8] {
    (ms * 1_000_000).to_be_bytes()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn outcomes_come_as_a_stream_in_the_order_in_which_they_end() {
    let (_switch, _executor, client) = common::world(4);
    let job = client.submit(Job::builder("sleep").tasks([ms(40), ms(5), ms(20)]).build()).unwrap();
    let mut stream = job.stream();
    assert_eq!((stream.left(), stream.size_hint()), (3, (3, Some(3))));
    let order: Vec<usize> = runtime().block_on(async {
        let first = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await.unwrap().0;
        let mut order = vec![first];
        while let Some((place, outcome)) = stream.next().await {
            assert!(outcome.is_ok());
            order.push(place);
        }
        order
    });
    assert_eq!(order, [1, 2, 0]);
    assert_eq!(stream.left(), 0);
}

#[test]
fn a_submission_waits_for_room_without_a_thread() {
    let switch = switch();
    let _executor = start_executor(Executor::builder(), switch.local_addr(), 4);
    let client = Client::builder().switch(switch.local_addr()).max_open(4).connect().unwrap();
    let first = client.submit(Job::builder("sleep").repeat(3, ms(60)).build()).unwrap();
    let sleep = || Job::builder("sleep").repeat(2, ms(1)).build();
    {
        let mut waits = pin!(client.submit_async(sleep()));
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(first.open() > 0, "it is dropped while it waits");
    }
    let outcomes = runtime().block_on(async {
        let jobs = [client.submit_async(sleep()).await.unwrap(), client.submit_async(sleep()).await.unwrap()];
        let mut outcomes = Vec::new();
        for task in jobs.into_iter().flat_map(midflight_host::JobHandle::into_tasks) {
            outcomes.push(task.await);
        }
        outcomes
    });
    assert!(outcomes.len() == 4 && outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert!(first.wait_timeout(Duration::from_secs(10)));
    let too_large = runtime().block_on(client.submit_async(Job::builder("noop").repeat(5, "").build()));
    assert!(matches!(too_large, Err(Error::TooManyOpen { .. })), "more than may ever be open");
}

#[test]
fn where_nobody_waits_for_room_its_lack_is_an_error() {
    let switch = switch();
    let builder = Client::builder().switch(switch.local_addr()).max_open(1).wait_for_room(false);
    let client = builder.connect().unwrap();
    let _open = client.submit(Job::builder("noop").task("").build()).unwrap();
    let refused = runtime().block_on(client.submit_async(Job::builder("noop").task("").build()));
    assert!(matches!(refused, Err(Error::TooManyOpen { .. })));
}
