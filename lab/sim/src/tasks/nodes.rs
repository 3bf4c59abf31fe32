//! Production endpoints as nodes of a world, and access to their state.

use super::Submissions;
use super::asic::{AsicSwitch, Pipeline, Tally};
use super::client::ClientActor;
use super::executor::ExecutorActor;
use super::switch::{Origin, Switch};
use crate::{Actor, Birth, NodeId, Place, World};
use midflight_asic::{AsicConfig, AsicError, AsicTasks};
use midflight_dataplane::program::Engine;
use midflight_dataplane::{Stats, Tasks, TasksConfig};
use midflight_endpoint::Nanos;
use midflight_tasks::client::{self, Client, ClientConfig};
use midflight_tasks::executor::{self, Executor, ExecutorConfig};
use midflight_tasks::mutants::planted;
use midflight_wire::tasks::DURABLE;
use rand::RngExt;
use std::cell::Cell;

/// Starts a switch outside the hardware.
///
/// # Errors
/// If the configuration is out of bounds.
pub fn add_switch(world: &mut World, config: TasksConfig) -> Result<NodeId, midflight_dataplane::ConfigError> {
    add_switch_at(world, Place::Apart, config)
}

/// Starts a switch inside a switch or as a process on a host. The world draws its epoch and secret.
///
/// # Errors
/// If the configuration is out of bounds.
pub fn add_switch_at(
    world: &mut World,
    place: Place,
    config: TasksConfig,
) -> Result<NodeId, midflight_dataplane::ConfigError> {
    Tasks::new(&config, 1, 0)?;
    let last = Cell::new((0, 0));
    Ok(world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let drawn = birth.random.random_range(1..=u32::MAX);
            let (lives, before) = last.get();
            let epoch = if planted(42) && lives > 1 { before } else { drawn };
            last.set((lives + 1, epoch));
            let switch = Switch::new(Origin { config, epoch, secret: birth.random.random() });
            Box::new(switch.expect("checked by nodes::add_switch")) as Box<dyn Actor>
        }),
    ))
}

/// Starts a switch with an asic engine, which counts in `tally`. The world draws its epoch and secret.
///
/// # Errors
/// If the configuration is out of bounds.
pub fn add_asic_at(
    world: &mut World,
    place: Place,
    config: AsicConfig,
    pipeline: Pipeline,
    tally: &Tally,
) -> Result<NodeId, AsicError> {
    AsicTasks::new(&config, 1, 0)?;
    let tally = tally.clone();
    Ok(world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let epoch = birth.random.random_range(1..=u32::MAX);
            let tasks = AsicTasks::new(&config, epoch, birth.random.random());
            let tasks = tasks.expect("checked by nodes::add_asic_at");
            Box::new(AsicSwitch::new(tasks, pipeline, tally.clone())) as Box<dyn Actor>
        }),
    ))
}

/// Starts an executor outside the hardware.
///
/// # Errors
/// If the configuration is out of bounds.
pub fn add_executor(world: &mut World, config: ExecutorConfig) -> Result<NodeId, executor::ConfigError> {
    add_executor_at(world, Place::Apart, config, 0, 0)
}

/// Starts an executor whose tasks end `late` nanoseconds later than requested, and `far` more if their data is
/// elsewhere. The world draws its identity and seed.
///
/// # Errors
/// If the configuration is out of bounds.
pub fn add_executor_at(
    world: &mut World,
    place: Place,
    config: ExecutorConfig,
    late: Nanos,
    far: Nanos,
) -> Result<NodeId, executor::ConfigError> {
    config.check()?;
    let places = config.places;
    Ok(world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let (identity, seed) = (birth.random.random(), birth.random.random());
            let config = ExecutorConfig { identity, seed, public_name: birth.random.random(), ..config.clone() };
            let executor = Executor::new(config, birth.now);
            let executor = executor.expect("checked by nodes::add_executor");
            Box::new(ExecutorActor::new(executor, late).at(places, far)) as Box<dyn Actor>
        }),
    ))
}

/// Starts a client outside the hardware, which gets its jobs by [`super::Command::Submit`].
///
/// # Errors
/// If the configuration is out of bounds.
pub fn add_client(world: &mut World, config: ClientConfig) -> Result<NodeId, client::ConfigError> {
    add_client_at(world, Place::Apart, config, Box::new(std::iter::empty()))
}

/// Starts a client that submits these jobs at their times; after a restart it has lost them. The world draws its
/// identity and seed.
///
/// # Errors
/// If the configuration is out of bounds.
pub fn add_client_at(
    world: &mut World,
    place: Place,
    config: ClientConfig,
    submissions: Submissions,
) -> Result<NodeId, client::ConfigError> {
    Client::new(config.clone(), world.now())?;
    let submissions = Cell::new(Some(submissions));
    Ok(world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let (identity, seed) = (birth.random.random::<u64>() & !DURABLE, birth.random.random());
            let client = Client::new(ClientConfig { identity, seed, ..config.clone() }, birth.now);
            let submissions = submissions.take().unwrap_or_else(|| Box::new(std::iter::empty()));
            Box::new(ClientActor::new(client.expect("checked by nodes::add_client"), submissions)) as Box<dyn Actor>
        }),
    ))
}

/// The executor on a node, if it runs.
#[must_use]
pub fn executor(world: &World, node: NodeId) -> Option<&Executor> {
    world.actor::<ExecutorActor>(node).map(ExecutorActor::executor)
}

/// The client on a node, if it runs.
#[must_use]
pub fn client(world: &World, node: NodeId) -> Option<&Client> {
    world.actor::<ClientActor>(node).map(ClientActor::client)
}

/// The counters of a switch, if it runs.
#[must_use]
pub fn switch(world: &World, node: NodeId) -> Option<Stats> {
    world.actor::<Switch>(node).map(|switch| switch.tasks().stats())
}

/// Checks the structures of a switch; one that is down is consistent.
///
/// # Errors
/// Names the inconsistent structures.
pub fn check_switch(world: &World, node: NodeId) -> Result<(), String> {
    world.actor::<Switch>(node).map_or(Ok(()), |switch| switch.tasks().check())
}
