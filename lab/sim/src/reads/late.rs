//! Datagrams of one kind that a node holds back, or sends again much later: a fault.

use crate::Context;
use midflight_endpoint::Nanos;
use midflight_wire::Header;
use midflight_wire::reads::Operation;
use rand::RngExt;
use std::collections::HashMap;
use std::net::SocketAddr;
use zerocopy::FromBytes;

/// Tokens of [`Context::after`] from here on are of datagrams that are late.
pub(super) const TOKENS: u64 = 1 << 32;

/// A share of the datagrams of one kind that a node sends is late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    /// Which kind.
    pub operation: Operation,
    /// By this at most.
    pub by: Nanos,
    /// Whether they are also sent at once: late copies.
    pub copies: bool,
    /// Which share.
    pub share: f64,
}

/// The datagrams of a node that are late.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    pub(super) present: Option<Late>,
    held: HashMap<u64, (SocketAddr, Vec<u8>)>,
    next: u64,
}

impl Lateness {
    /// Sends a datagram, now or later.
    pub(super) fn send(&mut self, context: &mut Context<'_>, to: SocketAddr, datagram: &[u8]) {
        let late = self.present.filter(|late| is_of(late.operation, datagram));
        let Some(late) = late.filter(|late| context.random().random_bool(late.share)) else {
            return context.send(to, datagram);
        };
        if late.copies {
            context.send(to, datagram);
        }
        let token = TOKENS + self.next;
        self.next += 1;
        self.held.insert(token, (to, datagram.to_vec()));
        let by = context.random().random_range(0..=late.by);
        context.after(by, token);
    }

    /// Sends the one whose time has come.
    pub(super) fn due(&mut self, context: &mut Context<'_>, token: u64) {
        if let Some((to, datagram)) = self.held.remove(&token) {
            context.send(to, &datagram);
        }
    }
}

fn is_of(operation: Operation, datagram: &[u8]) -> bool {
    Header::ref_from_prefix(datagram).is_ok_and(|(header, _)| header.operation == u8::from(operation))
}
