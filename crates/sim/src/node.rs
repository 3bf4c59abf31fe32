//! The parties of the simulated world: the production endpoints and the production switch, with a way to build
//! them anew after a crash.

use midflight_dataplane::{Out, Tasks, TasksConfig};
use midflight_tasks::client::{Client, ClientConfig};
use midflight_tasks::executor::{Executor, ExecutorConfig};
use midflight_tasks::{Endpoint, Nanos};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::net::SocketAddr;

/// Names a node of a [`crate::World`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) usize);

/// What a node is, as far as it survives a crash. Identities, seeds and epochs do not.
#[derive(Clone, Debug)]
pub(crate) enum Blueprint {
    Switch(TasksConfig),
    Executor(ExecutorConfig),
    Client(ClientConfig),
}

impl Blueprint {
    /// A fresh process.
    pub(crate) fn start(&self, now: Nanos, random: &mut Pcg64) -> Machine {
        match self {
            Self::Switch(config) => {
                let tasks = Tasks::new(config, random.random_range(1..=u32::MAX), random.random());
                Machine::Switch(Box::new(Switch {
                    tasks: tasks.expect("checked by World::add_switch"),
                    out: Out::new(),
                }))
            }
            Self::Executor(config) => {
                let config = ExecutorConfig { identity: random.random(), seed: random.random(), ..config.clone() };
                let executor = Executor::new(config, now).expect("checked by World::add_executor");
                Machine::Executor(Box::new(executor))
            }
            Self::Client(config) => {
                let config = ClientConfig { identity: random.random(), seed: random.random(), ..config.clone() };
                Machine::Client(Box::new(Client::new(config, now).expect("checked by World::add_client")))
            }
        }
    }
}

pub(crate) struct Switch {
    pub(crate) tasks: Tasks,
    pub(crate) out: Out,
}

/// A process.
pub(crate) enum Machine {
    Switch(Box<Switch>),
    Executor(Box<Executor>),
    Client(Box<Client>),
}

impl Machine {
    pub(crate) fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        match self {
            Self::Switch(_) => None,
            Self::Executor(executor) => executor.poll_transmit(now, buffer),
            Self::Client(client) => client.poll_transmit(now, buffer),
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Nanos> {
        match self {
            Self::Switch(_) => None,
            Self::Executor(executor) => executor.poll_timeout(),
            Self::Client(client) => client.poll_timeout(),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Nanos) {
        match self {
            Self::Switch(_) => {}
            Self::Executor(executor) => executor.handle_timeout(now),
            Self::Client(client) => client.handle_timeout(now),
        }
    }
}

pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    pub(crate) blueprint: Blueprint,
    /// `None` while it is down.
    pub(crate) machine: Option<Machine>,
    /// Counts its starts: what was scheduled for an earlier one is void.
    pub(crate) incarnation: u32,
    /// When it is to be woken, if that is scheduled.
    pub(crate) wake: Option<Nanos>,
}
