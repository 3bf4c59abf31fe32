//! Production endpoints as nodes of a world, and access to their state.

use super::{ClientActor, Load, ReplicaActor, SwitchActor, Work};
use crate::{Actor, Birth, NodeId, Place, World};
use midflight_dataplane::store::{NewSet, StoreConfig};
use midflight_endpoint::mutants::planted;
use midflight_store::client::{Client, ClientConfig};
use midflight_store::replica::{Replica, ReplicaConfig};
use rand::RngExt;
use std::rc::Rc;

/// Starts a switch with this set, by the asic engine or the soft one. The world draws the set's incarnation at each
/// start.
pub fn add_switch(world: &mut World, place: Place, config: StoreConfig, set: NewSet, is_asic: bool) -> NodeId {
    world.add_actor(
        place,
        Box::new(move |birth: &mut Birth| {
            let drawn = birth.random.random_range(1..=u64::MAX);
            let set = NewSet { incarnation: if planted(132) { 1 } else { drawn }, ..set.clone() };
            Box::new(SwitchActor::new(&config, &set, birth.random.random(), is_asic)) as Box<dyn Actor>
        }),
    )
}

/// Starts a replica with the files of its node's disk. `config` is called at each start; the world draws its seed.
pub fn add_replica(world: &mut World, config: impl Fn() -> ReplicaConfig + 'static) -> NodeId {
    world.add_actor(
        Place::Apart,
        Box::new(move |birth: &mut Birth| {
            let config = ReplicaConfig { seed: birth.random.random(), ..config() };
            let replica = Replica::new(config, std::mem::take(&mut birth.files), birth.now);
            Box::new(ReplicaActor::new(replica.map_err(|error| error.to_string()))) as Box<dyn Actor>
        }),
    )
}

/// Starts a client and its workers. The world draws its seed at each start.
pub fn add_client(world: &mut World, config: ClientConfig, load: Rc<Load>, work: Work) -> NodeId {
    world.add_actor(
        Place::Apart,
        Box::new(move |birth: &mut Birth| {
            let config = ClientConfig { seed: birth.random.random(), ..config.clone() };
            let client = Client::new(config, birth.now).expect("a trial's bounds are those of a client");
            let random = birth.random.clone();
            Box::new(ClientActor::new(client, Rc::clone(&load), work.clone(), random)) as Box<dyn Actor>
        }),
    )
}

/// The replica on a node, if it runs.
#[must_use]
pub fn replica(world: &World, node: NodeId) -> Option<&Replica> {
    world.actor::<ReplicaActor>(node)?.replica()
}

/// The switch on a node, if it runs.
#[must_use]
pub fn switch(world: &World, node: NodeId) -> Option<&SwitchActor> {
    world.actor(node)
}

/// The client on a node, if it runs.
#[must_use]
pub fn client(world: &World, node: NodeId) -> Option<&ClientActor> {
    world.actor(node)
}
