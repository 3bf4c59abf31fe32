//! A thread that panics must not leave a process that looks alive.

use crate::streams::{Stream, loopback, operator};
use crate::world::{World, wait_until};

#[test]
fn n6_a_keeper_that_panics_says_so_and_ends_its_streams() {
    let mut operator = operator(&[loopback()]);
    let mut stream = Stream::new(&operator);
    stream.ask(1);
    assert_eq!(operator.keeper.failure(), None);
    operator.keeper.panic_in_thread();
    assert!(stream.answer().is_none(), "its controller is told by that");
    wait_until("it says why", || operator.keeper.failure().is_some());
    let why = "the thread that takes the orders of controllers has panicked: the log has the message";
    assert_eq!(operator.keeper.failure(), Some(why));
}

#[test]
fn n6_a_controller_that_panics_says_so() {
    let world = World::new();
    let mut controller = world.controller(|_| ());
    assert_eq!(controller.failure(), None);
    controller.panic_in_thread();
    wait_until("it says why", || controller.failure().is_some());
    let why = "the thread that drives the controller has panicked: the log has the message";
    assert_eq!(controller.failure(), Some(why));
}
