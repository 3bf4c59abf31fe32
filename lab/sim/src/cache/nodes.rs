//! Production engines and endpoints as nodes of a world, and access to their state.

use super::{
    ClientActor, Controlled, ControllerActor, OperatorActor, Planner, SelectorActor, ServerActor, Service, Slot, Work,
};
use crate::{Actor, Birth, NodeId, Place, World};
use midflight_cache::client::{Client, ClientConfig};
use midflight_cache::control::{Controller, ControllerConfig, Network};
use midflight_cache::rsnode::{RsNode, RsNodeConfig};
use midflight_cache::select::Algorithm;
use midflight_cache::server::{Server, ServerConfig};
use midflight_dataplane::cache::CacheConfig;
use midflight_endpoint::Nanos;
use rand::RngExt;
use std::net::SocketAddr;
use std::sync::Arc;

const BOUNDED: &str = "a trial's bounds are those of its endpoints";

/// Starts an operator without rules, which gets them from controllers or a script. The world draws incarnation and
/// secret at each start.
pub fn add_operator(
    world: &mut World,
    place: Place,
    config: CacheConfig,
    controlled: Controlled,
    slot: Slot,
) -> NodeId {
    world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let (incarnation, secret) = (birth.random.random_range(1..=u64::MAX), birth.random.random());
            Box::new(OperatorActor::new(&config, incarnation, secret, controlled.clone(), slot.clone()))
                as Box<dyn Actor>
        }),
    )
}

/// The selector of an operator.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Bounds and times.
    pub config: RsNodeConfig,
    /// All possible servers.
    pub servers: Vec<SocketAddr>,
    /// Selection algorithm.
    pub select: Algorithm,
    /// Number of selectors.
    pub selectors: u32,
    /// Time per datagram.
    pub cost: Nanos,
    /// How its operator sees it.
    pub slot: Slot,
}

/// Starts a selector without replica groups.
pub fn add_selector(world: &mut World, place: Place, beside: Beside) -> NodeId {
    world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let Beside { config, servers, select, selectors, cost, slot } = &beside;
            let (incarnation, seed) = (birth.random.random_range(1..=u64::MAX), birth.random.random());
            let rsnode = RsNode::new(*config, servers, seed, |count| select.selector(count, *selectors));
            Box::new(SelectorActor::new(rsnode.expect(BOUNDED), incarnation, *cost, slot.clone())) as Box<dyn Actor>
        }),
    )
}

/// Starts a server. The world draws its secret at each start.
pub fn add_server(world: &mut World, place: Place, config: ServerConfig, service: Nanos) -> NodeId {
    world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let config = ServerConfig { secret: birth.random.random(), ..config.clone() };
            Box::new(ServerActor::new(Server::new(config).expect(BOUNDED), Service::Exponential(service)))
                as Box<dyn Actor>
        }),
    )
}

/// Starts a client with workers. `way` is its operator's address, or how it selects itself: the algorithm, the number of selectors, and the
/// servers. The world draws its seed at each start.
pub fn add_client(
    world: &mut World,
    place: Place,
    config: ClientConfig,
    way: Result<SocketAddr, (Algorithm, u32, Vec<SocketAddr>)>,
    work: Work,
) -> NodeId {
    world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let config = ClientConfig { seed: birth.random.random(), ..config.clone() };
            let client = match &way {
                Ok(operator) => Client::new(config, *operator).expect(BOUNDED),
                Err((select, selectors, servers)) => {
                    let selector = |count| select.selector(count, *selectors);
                    let mut client = Client::direct(config, servers, selector).expect(BOUNDED);
                    for (group, servers) in (0..).zip(work.groups.iter()) {
                        client.set_group(group, servers).expect(BOUNDED);
                    }
                    client
                }
            };
            Box::new(ClientActor::new(client, work.clone(), birth.random.clone())) as Box<dyn Actor>
        }),
    )
}

/// Starts a controller as a standby, with streams or datagrams.
pub fn add_controller(
    world: &mut World,
    config: ControllerConfig,
    network: Arc<Network>,
    planner: Planner,
    has_streams: bool,
) -> NodeId {
    world.add_actor(
        Place::Apart,
        Box::new(move |birth: &mut Birth| {
            let me = birth.random.random_range(1..=u64::MAX);
            let controller = Controller::new(birth.now, config, Arc::clone(&network), me);
            Box::new(ControllerActor::new(controller, Arc::clone(&network), planner.clone(), has_streams))
                as Box<dyn Actor>
        }),
    )
}

/// The controller on a node, if it runs.
#[must_use]
pub fn controller(world: &World, node: NodeId) -> Option<&ControllerActor> {
    world.actor(node)
}

/// The operator on a node, if it runs.
#[must_use]
pub fn operator(world: &World, node: NodeId) -> Option<&OperatorActor> {
    world.actor(node)
}

/// The selector on a node, if it runs.
#[must_use]
pub fn selector(world: &World, node: NodeId) -> Option<&SelectorActor> {
    world.actor(node)
}

/// The server on a node, if it runs.
#[must_use]
pub fn server(world: &World, node: NodeId) -> Option<&ServerActor> {
    world.actor(node)
}

/// The client on a node, if it runs.
#[must_use]
pub fn client(world: &World, node: NodeId) -> Option<&ClientActor> {
    world.actor(node)
}
