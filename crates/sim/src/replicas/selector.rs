//! The selector beside an operator. What it costs is the time of the accelerator that it runs on.

use super::{Passed, ReplicasEvent};
use crate::{Actor, Context, Wake};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_replicas::rsnode::RsNode;
use std::any::Any;
use std::net::SocketAddr;

/// The endpoint on a node.
#[derive(Debug)]
pub struct SelectorActor {
    rsnode: RsNode,
    incarnation: u64,
    cost: Nanos,
    refused: u64,
}

/// What a controller tells it: these replica groups have these servers.
#[derive(Clone, Debug)]
pub struct ReplicaGroups(pub Vec<(u32, Vec<SocketAddr>)>);

impl SelectorActor {
    /// A selector that has just started. `incarnation` is of this process only; each datagram takes it `cost`.
    #[must_use]
    pub fn new(rsnode: RsNode, incarnation: u64, cost: Nanos) -> Self {
        Self { rsnode, incarnation, cost, refused: 0 }
    }

    /// The endpoint.
    #[must_use]
    pub fn rsnode(&self) -> &RsNode {
        &self.rsnode
    }

    /// The number of its process.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Replica groups that it has not taken.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        let mut buffer = Vec::new();
        while let Some(to) = self.rsnode.poll_transmit(context.now(), &mut buffer) {
            if let Some(passed) = Passed::read(&buffer) {
                super::record(context, ReplicasEvent::Selected(passed));
            }
            context.send(to, &buffer);
        }
        match self.rsnode.poll_timeout() {
            Some(due) => context.wake_at(due),
            None => context.sleep(),
        }
    }
}

impl Actor for SelectorActor {
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.rsnode.handle(context.now(), from, datagram);
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        self.rsnode.handle_timeout(context.now());
        self.drive(context);
    }

    fn command(&mut self, _context: &mut Context<'_>, command: Box<dyn Any>) {
        if let Ok(groups) = command.downcast::<ReplicaGroups>() {
            for (group, servers) in groups.0 {
                self.refused += u64::from(self.rsnode.set_group(group, &servers).is_err());
            }
        }
    }

    fn cost(&self, _from: SocketAddr, _datagram: &[u8]) -> Nanos {
        self.cost
    }
}
