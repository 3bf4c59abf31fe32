//! An operator's selector. Its cost is the time of its accelerator.

use super::{CacheEvent, Passed};
use crate::{Actor, Context, Wake};
use midflight_cache::rsnode::RsNode;
use midflight_endpoint::{Endpoint, Nanos};
use std::any::Any;
use std::cell::{Ref, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

/// An operator's view of its selector: incarnation and endpoint, while it runs.
#[derive(Clone, Debug, Default)]
pub struct Slot(Rc<RefCell<Option<Running>>>);

type Running = (u64, Rc<RefCell<RsNode>>);

impl Slot {
    /// Number of its process; `None`: none runs.
    #[must_use]
    pub fn incarnation(&self) -> Option<u64> {
        self.0.borrow().as_ref().map(|(incarnation, _)| *incarnation)
    }

    /// Calls `what` with the selector, if it runs.
    pub fn with<T>(&self, what: impl FnOnce(&mut RsNode) -> T) -> Option<T> {
        self.0.borrow().as_ref().map(|(_, rsnode)| what(&mut rsnode.borrow_mut()))
    }
}

/// The endpoint on a node.
#[derive(Debug)]
pub struct SelectorActor {
    rsnode: Rc<RefCell<RsNode>>,
    slot: Slot,
    incarnation: u64,
    cost: Nanos,
    refused: u64,
}

/// Replica groups with their servers, from a controller.
#[derive(Clone, Debug)]
pub struct ReplicaGroups(pub Vec<(u32, Vec<SocketAddr>)>);

impl SelectorActor {
    /// A fresh selector. `incarnation` is of this process only; each datagram takes `cost`.
    #[must_use]
    pub fn new(rsnode: RsNode, incarnation: u64, cost: Nanos, slot: Slot) -> Self {
        let rsnode = Rc::new(RefCell::new(rsnode));
        *slot.0.borrow_mut() = Some((incarnation, Rc::clone(&rsnode)));
        Self { rsnode, slot, incarnation, cost, refused: 0 }
    }

    /// The endpoint.
    #[must_use]
    pub fn rsnode(&self) -> Ref<'_, RsNode> {
        self.rsnode.borrow()
    }

    /// Number of its process.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Number of refused replica groups.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        let mut rsnode = self.rsnode.borrow_mut();
        let mut buffer = Vec::new();
        while let Some(to) = rsnode.poll_transmit(context.now(), &mut buffer) {
            if let Some(passed) = Passed::read(&buffer) {
                super::record(context, CacheEvent::Selected(passed));
            }
            context.send(to, &buffer);
        }
        match rsnode.poll_timeout() {
            Some(due) => context.wake_at(due),
            None => context.sleep(),
        }
    }
}

impl Drop for SelectorActor {
    fn drop(&mut self) {
        if self.slot.incarnation() == Some(self.incarnation) {
            self.slot.0.borrow_mut().take();
        }
    }
}

impl Actor for SelectorActor {
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.rsnode.borrow_mut().handle(context.now(), from, datagram);
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        self.rsnode.borrow_mut().handle_timeout(context.now());
        self.drive(context);
    }

    fn command(&mut self, _context: &mut Context<'_>, command: Box<dyn Any>) {
        if let Ok(groups) = command.downcast::<ReplicaGroups>() {
            for (group, servers) in groups.0 {
                self.refused += u64::from(self.rsnode.borrow_mut().set_group(group, &servers).is_err());
            }
        }
    }

    fn cost(&self, _from: SocketAddr, _datagram: &[u8]) -> Nanos {
        self.cost
    }
}
