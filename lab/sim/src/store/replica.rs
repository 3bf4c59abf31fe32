//! The production replica with its disk and links.

use super::StoreEvent;
use super::late::{Late, Lateness, TOKENS};
use crate::{Actor, Context, LinkEvent, Wake};
use midflight_endpoint::{Durable, Endpoint, Link, Linked};
use midflight_store::replica::{Member, Replica};
use std::any::Any;
use std::net::SocketAddr;

/// The endpoint on a node, or why it cannot start.
pub struct ReplicaActor {
    replica: Result<Box<Replica>, String>,
    lateness: Lateness,
}

/// Orders of an operator. A replica that does not lead ignores them.
#[derive(Clone, Debug)]
pub enum Order {
    /// Adds a member.
    Add(Member),
    /// Removes a member.
    Remove(u64),
    /// Hands leadership to this member.
    Transfer(u64),
    /// Removes all data.
    Flush,
    /// Delays datagrams of one kind from now on; `None`: stops that.
    Late(Option<Late>),
}

impl std::fmt::Debug for ReplicaActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplicaActor").finish_non_exhaustive()
    }
}

impl ReplicaActor {
    /// A fresh replica, or why there is none.
    #[must_use]
    pub fn new(replica: Result<Replica, String>) -> Self {
        Self { replica: replica.map(Box::new), lateness: Lateness::default() }
    }

    /// The endpoint, if it runs.
    #[must_use]
    pub fn replica(&self) -> Option<&Replica> {
        self.replica.as_deref().ok()
    }

    /// Sets how many datagrams wait behind the next one.
    pub fn begin_turn(&mut self, waiting: u64) {
        if let Ok(replica) = &mut self.replica {
            replica.begin_turn(waiting);
        }
    }

    fn turn(&mut self, context: &mut Context<'_>, input: impl FnOnce(&mut Replica, &mut Context<'_>)) {
        let Ok(replica) = &mut self.replica else { return };
        input(replica, context);
        while let Some(event) = replica.poll_event() {
            super::record(context, StoreEvent::Replica(event));
        }
        let mut buffer = Vec::new();
        while let Some(to) = replica.poll_transmit(context.now(), &mut buffer) {
            self.lateness.send(context, to, &buffer);
        }
        while let Some(to) = replica.poll_direct(&mut buffer) {
            self.lateness.send(context, to, &buffer);
        }
        context.drive_replica(&mut **replica);
    }
}

impl Actor for ReplicaActor {
    fn start(&mut self, context: &mut Context<'_>) {
        if let Err(why) = &self.replica {
            let why = why.clone();
            super::record(context, StoreEvent::Unusable(why));
        }
        self.turn(context, |_, _| ());
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.turn(context, |replica, context| replica.handle(context.now(), from, datagram));
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Token(token) if token >= TOKENS => self.lateness.due(context, token),
            _ => self.turn(context, |replica, context| replica.handle_timeout(context.now())),
        }
    }

    fn persisted(&mut self, context: &mut Context<'_>, batch: u64) {
        self.turn(context, |replica, context| replica.persisted(context.now(), batch));
    }

    fn link(&mut self, context: &mut Context<'_>, link: Link, event: LinkEvent<'_>) {
        self.turn(context, |replica, context| match event {
            LinkEvent::Up => replica.link_up(context.now(), link),
            LinkEvent::Broken => replica.link_broken(context.now(), link),
            LinkEvent::Message(message) => replica.handle_message(context.now(), link, message),
            LinkEvent::Room => {}
        });
    }

    fn command(&mut self, context: &mut Context<'_>, command: Box<dyn Any>) {
        let Ok(order) = command.downcast::<Order>() else { return };
        if let Order::Late(late) = *order {
            self.lateness.present = late;
            return;
        }
        self.turn(context, |replica, context| {
            let now = context.now();
            // A non-leader, or one with another change under way, refuses: the operator asks again.
            let _ = match *order {
                Order::Add(member) => replica.add_member(now, member),
                Order::Remove(id) => replica.remove_member(now, id),
                Order::Transfer(id) => replica.transfer(now, id),
                Order::Flush => replica.flush(now),
                Order::Late(_) => Ok(()),
            };
        });
    }
}
